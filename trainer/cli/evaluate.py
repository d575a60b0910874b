"""``envsdk eval``: the pass rate of a model on tasks, with an interval clustered by task."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envsdk.cli.options import JsonFlag, SandboxOption, finish
from envsdk.episode.record import EpisodeRecord
from envsdk.errors import EnvsdkError, UsageError
from envsdk.files.jsonl import append_row
from envsdk.files.scratch import scratch
from trainer.cli.console import Lines
from trainer.cli.evaluation_text import lost, result_of, text_of
from trainer.evaluate import Evaluation

if TYPE_CHECKING:
    from envsdk.spec.model import Task


def evaluate(  # noqa: PLR0917 - typer reads options from the signature
    task_set: Annotated[str, typer.Option("--set", help="A set's revision, NAME@REV.")] = "",
    query: Annotated[str, typer.Option(help="Or a query.")] = "",
    model: Annotated[str, typer.Option(help="A model's name (smollm2) or folder.")] = "smollm2",
    n: Annotated[int, typer.Option("-n", min=1, help="Episodes of each task.")] = 4,
    limit: Annotated[int, typer.Option(help="At most so many tasks, the first ones; 0 for all.")] = 0,
    temperature: Annotated[float, typer.Option(help="Of the sampling; the training's is 1.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the sampling.")] = 0,
    concurrency: Annotated[int, typer.Option(help="Episodes at once.")] = 64,
    sandbox: SandboxOption = None,
    registry: Annotated[str, typer.Option(help="A database or server URL.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write every episode here, as JSONL.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Evaluate a model on the engine and in the precision that training uses.

    Exit 0 whatever the rate, and 4 where no episode could be scored.
    Examples: envsdk eval --set held-out@1; envsdk eval --query "family:sums" --model runs/first/model -n 8
    """
    if bool(task_set) == bool(query):
        raise UsageError("give either --set or --query", code="usage", hint="--set NAME@REV, or --query 'tag:shell'")
    if out is not None and out.exists():
        raise UsageError("the file exists", code="file_exists", hint="give another name, or remove it", where=str(out))
    asked = _Asked(model, n, temperature, seed, concurrency, sandbox, out)
    work = _evaluate(asked, task_set=task_set, query=query, limit=limit, registry=registry)
    name, found, seen = asyncio.run(work)
    nothing = EnvsdkError(
        f"none of {len(found.records)} episodes could be scored: {lost(found)}",
        code="nothing_scored",
        hint="run one and read how it ended: envsdk run TASK --policy vllm:MODEL",
        where=name,
    )
    errors = [] if found.overall.rate is not None else [nothing]
    for error in errors:
        typer.echo(f"error [{error.code}] {error}", err=True)
    finish(errors, as_json=as_json, text=text_of(name, found), **result_of(name, found), seen_in_training=seen)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What every task is asked: fields are the command's options of the same names."""

    model: str
    n: int
    temperature: float
    seed: int
    concurrency: int
    sandbox: str | None
    out: Path | None


async def _evaluate(
    asked: _Asked, *, task_set: str, query: str, limit: int, registry: str
) -> tuple[str, Evaluation, int | None]:
    """Name of the set, what was measured, and how many of its tasks the model was trained on, where that is known."""
    # Heavy, all of them, here and below: none is needed for --help.
    from registry.client import open_registry
    from trainer import task_set as sets
    from trainer.models import require_known

    say = Lines()
    require_known(asked.model)  # before anything is fetched for it
    with scratch("eval") as folder, open_registry(registry or None) as client:
        name, _, pairs = sets.pin(client, query=query, revision=task_set)
        tasks = sets.fetch(client, pairs[:limit] if limit else pairs, folder)
        say(f"{len(tasks)} tasks of {name}, {asked.n} episodes each")
        seen = _seen(tasks, asked.model, say)
        return name, await _measure(tasks, asked, say), seen


def _seen(tasks: Sequence[Task], model: str, say: Lines) -> int | None:
    """How many of the tasks the model was trained on, said where it is not none; `None` where nobody knows."""
    from trainer.model_folder import seen_in_training
    from trainer.models import resolve_model

    known = seen_in_training(resolve_model(model, progress=say))
    seen = None if known is None else sum(task.digests.task in known for task in tasks)
    if seen != 0:
        say(_warning(seen, len(tasks)))
    return seen


def _warning(seen: int | None, tasks: int) -> str:
    if seen is None:
        return "the model's folder does not say which tasks it was trained on: it may have seen these"
    return f"the model was trained on {seen} of these {tasks} tasks: their rate says nothing of tasks that it never saw"


async def _measure(tasks: Sequence[Task], asked: _Asked, say: Lines) -> Evaluation:
    """Run the episodes; engine and sandboxes are closed however that ends."""
    from envsdk.episode.conversation import ConversationAgent
    from envsdk.episode.run import run_episode
    from envsdk.sandboxes import open_provider
    from envsdk.waiting import told
    from trainer.engines.policy import open_policy
    from trainer.evaluate import evaluate as run_evaluation

    provider = open_provider(asked.sandbox)
    policy = open_policy(asked.model, temperature=asked.temperature, max_concurrent=asked.concurrency)
    done: list[EpisodeRecord] = []

    async def run(task: Task, episode_id: str, episode_seed: int) -> EpisodeRecord:
        agent = ConversationAgent(policy, episode_seed, session_id=episode_id)
        return await run_episode(task, agent, provider, episode_id=episode_id)

    def ended(record: EpisodeRecord) -> None:
        done.append(record)
        if asked.out is not None:
            append_row(asked.out, record.model_dump(mode="json"), fsync=False)

    def standing() -> str:
        return f"{len(done)} of {len(tasks) * asked.n} episodes" if done else "still starting"

    say("starting the engine (on a CPU some tens of seconds)")
    try:
        work = run_evaluation(tasks, run, n=asked.n, concurrency=asked.concurrency, seed=asked.seed, on_end=ended)
        return await told(work, say, standing)
    finally:
        await policy.close()
        await provider.close()

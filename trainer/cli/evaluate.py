"""``envsdk eval``: the pass rate of a model on tasks, with an interval clustered by task."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from envsdk.cli.options import JsonFlag, SandboxOption, finish
from envsdk.episode.record import EpisodeRecord
from envsdk.errors import EnvsdkError, UsageError
from envsdk.files.jsonl import append_row
from envsdk.files.scratch import scratch
from trainer.cli.console import Lines
from trainer.evaluate import Evaluation
from trainer.interval import RateInterval


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
    work = _evaluate(
        task_set=task_set,
        query=query,
        model=model,
        n=n,
        limit=limit,
        temperature=temperature,
        seed=seed,
        concurrency=concurrency,
        sandbox=sandbox,
        registry=registry,
        out=out,
    )
    name, found, seen = asyncio.run(work)
    nothing = EnvsdkError(
        f"none of {len(found.records)} episodes could be scored: {_lost(found)}",
        code="nothing_scored",
        hint="run one and read how it ended: envsdk run TASK --policy vllm:MODEL",
        where=name,
    )
    errors = [] if found.overall.rate is not None else [nothing]
    for error in errors:
        typer.echo(f"error [{error.code}] {error}", err=True)
    finish(errors, as_json=as_json, text=_text(name, found), **_result(name, found), seen_in_training=seen)


async def _evaluate(
    *,
    task_set: str,
    query: str,
    model: str,
    n: int,
    limit: int,
    temperature: float,
    seed: int,
    concurrency: int,
    sandbox: str | None,
    registry: str,
    out: Path | None,
) -> tuple[str, Evaluation, int | None]:
    """Name of the set, what was measured, and how many of its tasks the model was trained on, where that is known."""
    # Heavy, all of them: none is needed for --help.
    from envsdk.episode.conversation import ConversationAgent
    from envsdk.episode.run import run_episode
    from envsdk.sandboxes import open_provider
    from envsdk.spec.model import Task
    from envsdk.waiting import told
    from registry.client import open_registry
    from trainer import task_set as sets
    from trainer.engines.policy import open_policy
    from trainer.evaluate import evaluate as run_evaluation
    from trainer.model_folder import seen_in_training
    from trainer.models import require_known, resolve_model

    say = Lines()
    require_known(model)  # before anything is fetched for it
    with scratch("eval") as folder, open_registry(registry or None) as client:
        name, _, pairs = sets.pin(client, query=query, revision=task_set)
        tasks = sets.fetch(client, pairs[:limit] if limit else pairs, folder)
        say(f"{len(tasks)} tasks of {name}, {n} episodes each")
        known = seen_in_training(resolve_model(model, progress=say))
        seen = None if known is None else sum(task.digests.task in known for task in tasks)
        if seen != 0:
            say(_warning(seen, len(tasks)))
        provider = open_provider(sandbox)
        policy = open_policy(model, temperature=temperature, max_concurrent=concurrency)
        done: list[EpisodeRecord] = []

        async def run(task: Task, episode_id: str, episode_seed: int) -> EpisodeRecord:
            agent = ConversationAgent(policy, episode_seed, session_id=episode_id)
            return await run_episode(task, agent, provider, episode_id=episode_id)

        def ended(record: EpisodeRecord) -> None:
            done.append(record)
            if out is not None:
                append_row(out, record.model_dump(mode="json"), fsync=False)

        def standing() -> str:
            return f"{len(done)} of {len(tasks) * n} episodes" if done else "still starting"

        say("starting the engine (on a CPU some tens of seconds)")
        try:
            work = run_evaluation(tasks, run, n=n, concurrency=concurrency, seed=seed, on_end=ended)
            found = await told(work, say, standing)
        finally:
            await policy.close()
            await provider.close()
    return name, found, seen


def _warning(seen: int | None, tasks: int) -> str:
    if seen is None:
        return "the model's folder does not say which tasks it was trained on: it may have seen these"
    return f"the model was trained on {seen} of these {tasks} tasks: their rate says nothing of tasks that it never saw"


def _result(name: str, found: Evaluation) -> dict[str, Any]:
    return {
        "set": name,
        **_rate(found.overall),
        "coverage": found.coverage,
        "families": {family: _rate(interval) for family, interval in found.families.items()},
    }


def _rate(interval: RateInterval) -> dict[str, Any]:
    return {
        "pass_rate": interval.rate,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "tasks": interval.clusters,
    }


def _text(name: str, found: Evaluation) -> str:
    lines = [f"{name}: {_shown(found.overall)}, coverage {100 * found.coverage:.0f} %"]
    lines += [f"  {family}: {_shown(interval)}" for family, interval in found.families.items()]
    if lost := _lost(found):
        lines.append(f"  not scored: {lost}")
    return "\n".join(lines)


def _lost(found: Evaluation) -> str:
    """What ended the episodes that could not be scored, the most frequent first."""
    causes = Counter(record.outcome.cause for record in found.records if not record.outcome.graded)
    return ", ".join(f"{count} {cause}" for cause, count in causes.most_common())


def _shown(interval: RateInterval) -> str:
    if interval.rate is None or interval.low is None or interval.high is None:
        return "nothing was scored"
    bounds = f"{100 * interval.low:.0f}-{100 * interval.high:.0f} %"
    return f"{100 * interval.rate:.1f} % (95 % interval {bounds}, {interval.n} episodes of {interval.clusters} tasks)"

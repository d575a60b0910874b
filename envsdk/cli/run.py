"""``envsdk run``: episodes of one task by a policy, printed, and stored where asked."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envsdk.cli.envelope import UNDECIDED, failure, success
from envsdk.cli.options import JsonFlag, SandboxOption, emit
from envsdk.errors import EnvsdkError
from envsdk.files.scratch import scratch

if TYPE_CHECKING:
    from envsdk.episode.agents import Agent
    from envsdk.episode.record import EpisodeRecord
    from envsdk.policy import Policy
    from envsdk.spec.model import Task


def run(
    source: Annotated[str, typer.Argument(metavar="TASK", help="A task directory, or FILE.py::NAME.")],
    *,
    policy: Annotated[str, typer.Option(help="oracle, noop, vllm:MODEL or openai:URL#MODEL.")] = "oracle",
    n: Annotated[int, typer.Option("-n", min=1, help="Episodes.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Append the episodes to this JSONL file.")] = None,
    sandbox: SandboxOption = None,
    seed: Annotated[int | None, typer.Option(help="Of the sampling; episode i takes SEED + i.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run episodes and say how each ended. Exit 4 where one could not be graded.

    With --out the end states are kept beside the file, in FILE.states, for `envsdk score`.
    Examples: envsdk run my-task; envsdk run mine.py::my-task --policy vllm:smollm2 -n 8 --out episodes.jsonl
    """
    from envsdk.authoring.find import one_task

    with scratch("run") as folder:
        task = one_task(source, folder)
        records = asyncio.run(_run(task, policy, n, out=out, sandbox=sandbox, seed=seed))
    episodes = [record.model_dump(mode="json") for record in records]
    lost = [record for record in records if not record.outcome.graded]
    errors = [EnvsdkError(_why(record), code=record.outcome.cause, where=task.slug) for record in lost]
    envelope = failure(*errors, episodes=episodes) if errors else success(episodes=episodes)
    emit(envelope, as_json=as_json, text=summary(records))
    for why in sorted({why_ungraded(record) for record in lost}):
        typer.echo(f"not graded: {why}", err=True)
    if lost:
        raise typer.Exit(UNDECIDED)


async def _run(
    task: Task, name: str, n: int, *, out: Path | None, sandbox: str | None, seed: int | None
) -> list[EpisodeRecord]:
    from envsdk.episode.agents import NoopAgent, OracleAgent
    from envsdk.episode.conversation import ConversationAgent
    from envsdk.episode.group import run_group
    from envsdk.files.jsonl import append_row
    from envsdk.policies.find import open_policy
    from envsdk.sandboxes import open_provider

    policy: Policy | None = None if name in {"oracle", "noop"} else open_policy(name)

    def agent(place: int) -> Agent:
        if policy is None:
            return OracleAgent() if name == "oracle" else NoopAgent()
        return ConversationAgent(policy, None if seed is None else seed + place, group_id=task.digests.task)

    def heard(record: EpisodeRecord) -> None:
        print(f"{task.slug} [{record.index_in_group}] {line(record)}", file=sys.stderr)
        if out is not None:
            append_row(out, record.model_dump(mode="json"))

    needs_box = agent(0).needs_sandbox(task) or task.spec.verifier.kind == "script"
    provider = open_provider(sandbox) if needs_box else None
    keep = None if out is None else states_folder(out)
    try:
        if policy is not None:
            await _warm_up(policy)
        return await run_group(task, agent, provider, n, keep=keep, on_record=heard)
    finally:
        if policy is not None:
            await policy.close()
        if provider is not None:
            await provider.close()


async def _warm_up(policy: Policy) -> None:
    """Start the engine before the first episode: an episode's clock is not for waiting until it is up."""
    from envsdk.waiting import told

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    say(f"starting {policy.id.model}")
    await (await told(policy.begin(session_id="warm-up"), say, lambda: "still starting")).close()


def states_folder(episodes: Path) -> Path:
    """Where the end states of an episodes' file are kept."""
    return episodes.with_name(f"{episodes.name}.states")


def line(record: EpisodeRecord) -> str:
    """How one episode ended, in one line."""
    reward = "no reward" if record.outcome.reward is None else f"reward {record.outcome.reward:g}"
    seconds = record.times.total_s or 0.0
    return (
        f"{record.outcome.outcome_class} ({record.outcome.cause}), {reward}, {len(record.turns)} turns, {seconds:.2f} s"
    )


def summary(records: list[EpisodeRecord]) -> str:
    """Mean reward over what was scored, with the coverage beside it."""
    scored = [record.outcome.reward for record in records if record.outcome.reward is not None]
    passed = sum(record.outcome.outcome_class == "model_success" for record in records)
    mean = f"mean reward {sum(scored) / len(scored):.3f}" if scored else "no reward"
    return f"{passed} of {len(scored)} passed, {mean}, scored {len(scored)} of {len(records)}"


def why_ungraded(record: EpisodeRecord) -> str:
    """What ended an episode without a grade, with what was noted of it, and what to do as the outcome table says."""
    from envsdk.outcome.table import outcome_table

    note = record.facts.get("exception", {}).get("note") or record.evidence.message
    known = outcome_table().causes.get(record.outcome.cause)
    action = f" ({known.action})" if known is not None else ""
    return f"{record.outcome.cause}: {note}{action}" if note else f"{record.outcome.cause}{action}"


def _why(record: EpisodeRecord) -> str:
    return f"episode {record.episode_id} was not graded: {why_ungraded(record)}"

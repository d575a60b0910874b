"""Run one episode: box, acting, verifying, outcome, record.

`run_episode` never raises for what happens inside an episode: whatever ends it becomes facts, and the outcome table
says what follows. Cancelling it ends the episode, closes its sandboxes and still returns the record, so that every
dispatched episode ends exactly once; a second cancel, while that is under way, is raised.

    dispatched -> [build, acquire, set-up] -> acting -> look at what is left -> verify -> classify -> record
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from envsdk.episode.agents import Agent
from envsdk.episode.attempt import Attempt
from envsdk.episode.clocks import EpisodeClock, OnStamp
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.steps import play_steps
from envsdk.errors import EnvsdkError
from envsdk.outcome import classify
from envsdk.sandboxes.base import SandboxProvider, Snapshot
from envsdk.spec.model import Task


async def run_episode(
    task: Task,
    agent: Agent,
    provider: SandboxProvider | None,
    *,
    episode_id: str | None = None,
    group_id: str = "",
    index_in_group: int = 0,
    attempt: int = 0,
    on_stamp: OnStamp | None = None,
    prepared: Snapshot | None = None,
    grading: AbstractAsyncContextManager[object] | None = None,
    keep: Path | None = None,
) -> EpisodeRecord:
    """Let ``agent`` attempt ``task`` once.

    Args:
        task: what to attempt.
        agent: who acts.
        provider: where sandboxes come from; `None` is enough for tasks that need none.
        episode_id: idempotency key; a fresh one where absent.
        group_id: the group this episode belongs to.
        index_in_group: its place in the group.
        attempt: how often this place was dispatched before.
        on_stamp: hears each stamp (name, seconds after dispatch).
        prepared: whose files the box starts with, in place of the image's alone; a task of answers gets a box, too.
        grading: entered when the acting has ended and held while the verdict is made: it bounds how many are verified
            at once. A task of several steps acts between its verdicts and enters nothing.
        keep: a folder to keep the end state in, for `envsdk score`; the record names it by digest.
    """
    clock = EpisodeClock(task.spec.budget, on_stamp=on_stamp)
    clock.stamp("dispatched")
    under_way = Attempt(task, agent, provider, clock, grading=None if task.spec.steps else grading, keep=keep)
    await _play(under_way, prepared)
    return _record(
        under_way,
        episode_id=episode_id or uuid.uuid4().hex,
        group_id=group_id,
        index_in_group=index_in_group,
        attempt=attempt,
    )


async def _play(under_way: Attempt, prepared: Snapshot | None) -> None:
    """From the box to the verdict; whatever ends it, everything that was opened is closed again."""
    closing = AsyncExitStack()
    try:
        await _go(under_way, closing, prepared)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None:
            current.uncancel()
        under_way.cancelled()
    except Exception as error:  # noqa: BLE001 - a defect of the harness ends this episode, not the run
        under_way.broke(error)
    try:
        await closing.aclose()
    except EnvsdkError as error:
        under_way.sandbox["close_error"] = error.code


async def _go(attempt: Attempt, closing: AsyncExitStack, prepared: Snapshot | None) -> None:
    if not await attempt.open(closing, prepared):
        return
    if attempt.task.spec.steps:
        await play_steps(attempt, closing)
        return
    box = await attempt.act(attempt.task, closing)
    if attempt.is_the_models():
        await attempt.grade(attempt.task, box)


def _record(under_way: Attempt, *, episode_id: str, group_id: str, index_in_group: int, attempt: int) -> EpisodeRecord:
    """What an ended attempt leaves for ever."""
    task, clock, end = under_way.task, under_way.clock, under_way.end
    trace = end.trace if end else None
    versions = [span.version for span in trace.versions] if trace else []
    return EpisodeRecord(
        episode_id=episode_id,
        slug=task.slug,
        task_digest=task.digests.task,
        verifier_digest=task.digests.verifier,
        family=task.spec.family,
        level=task.spec.level,
        group_id=group_id,
        index_in_group=index_in_group,
        attempt=attempt,
        policy=under_way.agent.policy,
        weight_version_oldest=min(versions, default=None),
        weight_version_newest=max(versions, default=None),
        outcome=classify(under_way.facts),
        facts=under_way.facts,
        turns=end.turns if end else (),
        tokens=trace,
        times=clock.times(),
        stamps=clock.stamps,
        evidence=under_way.evidence,
        sandbox=under_way.sandbox,
        service_logs=under_way.box.service_logs() if under_way.box else {},
        started_at=clock.started_at,
    )

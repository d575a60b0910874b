"""Run the episodes of one group: n attempts at one task, side by side.

Where a set-up is given it runs once, in one box without services, and each sibling starts from its files, beside
services of its own; processes are not copied. Without one each sibling takes a box of its own. Every member ends with a
record, whatever happens to the others.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

from envsdk.episode.agents import Agent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import SandboxProvider, Snapshot
from envsdk.spec.model import Task
from envsdk.verifying.pristine import box_spec, image_of

OnRecord = Callable[[EpisodeRecord], None]


async def run_group(
    task: Task,
    agent_factory: Callable[[int], Agent],
    provider: SandboxProvider | None,
    n: int,
    *,
    group_id: str = "",
    setup: str = "",
    at_once: int = 32,
    keep: Path | None = None,
    on_record: OnRecord = lambda _: None,
) -> list[EpisodeRecord]:
    """``n`` records in the order of their places.

    Args:
        task: what to attempt.
        agent_factory: makes the agent of each place.
        provider: where sandboxes come from.
        n: members of the group.
        group_id: their shared name; a fresh one where absent.
        setup: shell command run once, as root, before the siblings start from its state.
        at_once: members that act at the same time.
        keep: where end states are kept (`run_episode`).
        on_record: hears each record when its episode has ended.

    Raises:
        SandboxError: the set-up failed (``setup_failed``); no episode was begun.
    """
    name = group_id or uuid.uuid4().hex
    prepared = await _set_up(task, provider, setup) if setup and provider is not None else None
    slots = asyncio.Semaphore(at_once)

    async def member(place: int) -> EpisodeRecord:
        async with slots:
            record = await run_episode(
                task,
                agent_factory(place),
                provider,
                group_id=name,
                index_in_group=place,
                prepared=prepared,
                keep=keep,
            )
        on_record(record)
        return record

    return list(await asyncio.gather(*(member(place) for place in range(n))))


async def _set_up(task: Task, provider: SandboxProvider, setup: str) -> Snapshot:
    box = await provider.acquire(box_spec(task, await image_of(task, provider)), timeout_s=task.spec.budget.acquire_s)
    try:
        result = await box.exec(setup, user="root", timeout_s=task.spec.budget.setup_s)
        if not result.ok:
            said = (result.stderr or result.stdout)[-300:].decode("utf-8", "replace")
            how = f"ended with {result.exit_code}" if not result.timed_out else "had no end in time"
            raise SandboxError(f"the set-up {how}: {said}", code="setup_failed", where=task.slug)
        return await box.snapshot()
    finally:
        await box.close()

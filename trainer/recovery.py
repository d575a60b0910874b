"""What a run must remember to go on after a kill, beside the learner's own state.

A checkpoint holds, at one moment between two steps: versions, counters, the sampler, the ledger's offset, which groups
waited in the pool and which were in flight. The ledger holds every episode that ended, before or after that moment. So
`recover` puts together: groups of the pool as they were; and for every other group that is dispatched again, under its
old id, those ended episodes that the restored weights' past explains. An episode made by weights of a later, undone
version is left out, counted, and its place runs again. Nothing acknowledged is lost in silence, nothing is trained
twice.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from envsdk.episode.record import EpisodeRecord
from envsdk.errors import StoreError
from envsdk.frozen import Frozen
from envsdk.spec.model import Task
from trainer.group import CompleteGroup, Draw, EndedMember

_CLOSED = {"given_up", "cancelled"}
"""Causes of what a run ended itself; ``cancelled`` in ledgers from before ``given_up`` was told apart."""


class GroupState(Frozen):
    """A group in a checkpoint; its records stay in the ledger. ``episodes``: empty for one in flight."""

    group_id: str
    order: int
    task_digest: str
    size: int
    version: int
    completion_order: int = 0
    refilled: int = 0
    episodes: tuple[str, ...] = ()


class LoopState(Frozen):
    """Everything of a checkpoint that is not the learner's.

    ``ledger_ended``: episodes that had ended by then. ``refills`` and ``exhausted`` are those of groups that had
    completed; of the others the ledger tells.
    """

    step: int
    version: int
    next_order: int
    accepted: int
    completions: int
    ledger_ended: int
    rejected: dict[str, int]
    refills: int = 0
    exhausted: int = 0
    pool: tuple[GroupState, ...]
    in_flight: tuple[GroupState, ...]
    sampler: dict[str, object]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a resumed run starts from.

    Attributes:
        pool: complete groups, as they waited.
        in_flight: groups to take over, each with its members that had ended.
        later: ended members of groups that were dispatched after the checkpoint, by group id, for when they are drawn.
        refilled: attempts of those groups that failed in the machinery, by group id; each was or will be made again.
        undone: episodes left out because weights that were rolled back made them.
    """

    pool: tuple[CompleteGroup, ...] = ()
    in_flight: tuple[tuple[Draw, dict[int, EndedMember]], ...] = ()
    later: dict[str, dict[int, EndedMember]] = field(default_factory=dict)
    refilled: dict[str, int] = field(default_factory=dict)
    undone: int = 0


def beginning(*, version: int, sampler: dict[str, object]) -> LoopState:
    """The state before the first step: where a run that was killed before its first checkpoint goes on."""
    return LoopState(
        step=0,
        version=version,
        next_order=0,
        accepted=0,
        completions=0,
        ledger_ended=0,
        rejected={},
        pool=(),
        in_flight=(),
        sampler=sampler,
    )


def describe(group: CompleteGroup) -> GroupState:
    """A complete group, for a checkpoint."""
    return GroupState(
        group_id=group.group_id,
        order=group.draw.order,
        task_digest=group.draw.task.digests.task,
        size=group.draw.size,
        version=group.draw.version,
        completion_order=group.completion_order,
        refilled=group.refilled,
        episodes=tuple(record.episode_id for record in group.episodes),
    )


def describe_draw(draw: Draw) -> GroupState:
    """A group in flight, for a checkpoint."""
    return GroupState(
        group_id=draw.group_id,
        order=draw.order,
        task_digest=draw.task.digests.task,
        size=draw.size,
        version=draw.version,
    )


def recover(state: LoopState, records: Iterable[EpisodeRecord], tasks: Mapping[str, Task]) -> Recovered:
    """Put a checkpoint and the ledger together.

    Args:
        state: the checkpoint's.
        records: every ended episode of the run.
        tasks: the pinned tasks by task digest.

    Raises:
        StoreError: ``ledger_cut``: the ledger holds fewer episodes than when the checkpoint was written.
    """
    now = time.monotonic()
    by_id = {record.episode_id: record for record in records}
    if len(by_id) < state.ledger_ended:
        raise StoreError(
            f"the ledger holds {len(by_id)} ended episodes where the checkpoint of step {state.step} knew "
            f"{state.ledger_ended}",
            code="ledger_cut",
            hint="put the run's episodes.jsonl back as it was, or start a new run",
        )
    pooled = {episode for group in state.pool for episode in group.episodes}
    done: defaultdict[str, dict[int, EndedMember]] = defaultdict(dict)
    refilled: Counter[str] = Counter()
    undone = 0
    open_groups = {group.group_id for group in state.in_flight}
    for record in by_id.values():
        order = int(record.group_id.rpartition("g")[2])
        closed = order < state.next_order and record.group_id not in open_groups
        if closed or record.episode_id in pooled:
            continue
        refilled[record.group_id] += record.outcome.redispatch
        if record.outcome.redispatch or record.outcome.cause in _CLOSED:
            continue
        if (record.weight_version_newest or 0) > state.version:
            undone += 1
            continue
        done[record.group_id][record.index_in_group] = EndedMember(record, now, now)
    return Recovered(
        pool=tuple(_complete(group, by_id, tasks, now) for group in state.pool),
        in_flight=tuple((_draw(group, tasks, now), done.pop(group.group_id, {})) for group in state.in_flight),
        later=dict(done),
        refilled=dict(refilled),
        undone=undone,
    )


def _draw(group: GroupState, tasks: Mapping[str, Task], now: float) -> Draw:
    return Draw(group.group_id, group.order, tasks[group.task_digest], group.size, group.version, now)


def _complete(
    group: GroupState, records: Mapping[str, EpisodeRecord], tasks: Mapping[str, Task], now: float
) -> CompleteGroup:
    members: Sequence[EndedMember] = [EndedMember(records[episode], now, now) for episode in group.episodes]
    return CompleteGroup(
        draw=_draw(group, tasks, now),
        members=tuple(members),
        completed_at=now,
        completion_order=group.completion_order,
        refilled=group.refilled,
    )

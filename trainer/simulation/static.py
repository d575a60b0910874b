"""One batch under fixed weights: how long until P groups are complete, and what it was made of.

List scheduling: the next member in order takes the first slot that is free. At equal times groups count in the order in
which they were launched. Not promised: admission and lag, which need versions (`trainer.simulation.asynchronous`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from trainer.launch_order import Launch, launch_order
from trainer.simulation.trace import TICKS_PER_S, Last, Share, TraceGroup, composition, members_of, ticks

StaticMode = Literal["group_order", "longest_first", "interleaved", "first_complete"]


@dataclass(frozen=True, slots=True)
class StaticResult:
    """What came of one batch.

    Attributes:
        ready: (group, seconds) in the order of completion, up to the batch.
        kept: groups of the batch, in the order of completion.
        carried: started before the batch was complete and not kept. ``not_started``: launched, never begun.
        last: the member whose end completed the batch.
        kept_share, launched_share: composition of what was kept, and of every member that had started.
    """

    ready: tuple[tuple[str, float], ...]
    kept: tuple[str, ...]
    time_to_batch_s: float
    carried: tuple[str, ...]
    not_started: tuple[str, ...]
    last: Last
    kept_share: Share
    launched_share: Share


def simulate_static(
    groups: Sequence[TraceGroup], *, groups_per_batch: int, slots: int | None, mode: StaticMode
) -> StaticResult:
    """Run one batch of ``groups_per_batch`` groups on ``slots`` slots (`None`: no limit).

    ``first_complete`` launches every group and keeps the first to complete; the other modes launch the first P groups,
    in their own order, and wait for all.

    Raises:
        ValueError: fewer groups than a batch takes.
    """
    if len(groups) < groups_per_batch:
        raise ValueError(f"{len(groups)} groups cannot fill a batch of {groups_per_batch}")
    launched = list(groups) if mode == "first_complete" else list(groups[:groups_per_batch])
    order = launch_order(
        [len(group.durations_s) for group in launched],
        [group.expected_s for group in launched],
        order="group_order" if mode == "first_complete" else mode,
    )
    runs = _list_schedule(
        [(member, ticks(launched[member.group].durations_s[member.place])) for member in order], slots
    )
    ended_at, first_place = [0] * len(launched), [len(order)] * len(launched)
    for place, run in enumerate(runs):
        ended_at[run.member.group] = max(ended_at[run.member.group], run.end)
        first_place[run.member.group] = min(first_place[run.member.group], place)
    # Groups that complete at the same time count in the order in which they were launched.
    done = sorted(range(len(launched)), key=lambda g: (ended_at[g], first_place[g]))
    kept = done[:groups_per_batch]
    batch_at = ended_at[kept[-1]]
    begun = [run.member for run in runs if run.start < batch_at]
    left = [g for g in range(len(launched)) if g not in kept]
    started = {member.group for member in begun}
    return StaticResult(
        ready=tuple((launched[g].id, ended_at[g] / TICKS_PER_S) for g in kept),
        kept=tuple(launched[g].id for g in kept),
        time_to_batch_s=batch_at / TICKS_PER_S,
        carried=tuple(launched[g].id for g in left if g in started),
        not_started=tuple(launched[g].id for g in left if g not in started),
        last=_last(launched, [run for run in runs if run.member.group == kept[-1]]),
        kept_share=composition(members_of([launched[g] for g in kept])),
        launched_share=composition(
            (launched[m.group].durations_s[m.place], launched[m.group].passed[m.place]) for m in begun
        ),
    )


def _last(launched: Sequence[TraceGroup], runs: Sequence[_Run]) -> Last:
    run = max(runs, key=lambda run: run.end)
    return Last(launched[run.member.group].id, run.member.place, run.start / TICKS_PER_S)


class _Run(NamedTuple):
    member: Launch
    start: int
    end: int


def _list_schedule(members: Sequence[tuple[Launch, int]], slots: int | None) -> list[_Run]:
    busy_until: list[int] = []
    runs = []
    for member, duration in members:
        start = 0 if slots is None or len(busy_until) < slots else heapq.heappop(busy_until)
        heapq.heappush(busy_until, start + duration)
        runs.append(_Run(member, start, start + duration))
    return runs

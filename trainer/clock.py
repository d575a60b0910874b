"""Time to trainable batch, and where it went.

In steady state it is max(0, moment the batch is complete, verified and packed - previous hand-over to the learner),
with 0 for the first previous hand-over. The time is attributed along the critical path, that is through the last
episode of the group that completed last; every second of the window gets exactly one name:

    queue      the group was not dispatched yet, or its member waited for a slot
    acquire    sandbox acquire and set-up
    prefill    until the first token, the engine's own queue included
    decode     generating, tool      acting between turns (split of the time from first to last token by their sums)
    verify     until the reward, what it waited for a free verification included
    straggler  every other group of the batch was complete, and this one was waited for
    assembly   advantages and packing
    other      none of these was stamped

Waiting for a straggler is no work of its own: what it was busy with meanwhile, that is in which phase there are seconds
to be won, stands beside the attribution and adds up to its ``straggler``.

Legend: all moments are seconds on the run's monotonic clock; a record's stamps count from the start of its slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainer.group import CompleteGroup, EndedMember

PHASES = ("queue", "acquire", "prefill", "decode", "tool", "verify", "straggler", "assembly", "other")
BUSY = tuple(phase for phase in PHASES if phase not in {"straggler", "assembly"})
"""What an episode can be busy with."""


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """The clock's reading of one batch, in seconds.

    Attributes:
        t2tb_s: time to trainable batch.
        attribution: seconds per phase; they add up to ``t2tb_s``.
        straggler: seconds by what the group was busy with that alone was waited for; they add up to the attribution's
            ``straggler``.
        learner_wait_s: how long the learner stood idle for it.
        pool_wait_s: how long the complete batch stood idle for the learner.
        age_s: from the dispatch of its first group to the hand-over.
    """

    t2tb_s: float
    attribution: dict[str, float]
    straggler: dict[str, float]
    learner_wait_s: float
    pool_wait_s: float
    age_s: float


def batch_timing(
    groups: Sequence[CompleteGroup],
    *,
    previous_handover: float,
    asked_at: float,
    taken_at: float,
    packed_at: float,
) -> BatchTiming:
    """Read the clock for one batch.

    Args:
        groups: the taken groups.
        previous_handover: when the learner got the batch before.
        asked_at: when the learner became free for this one.
        taken_at: when the groups were taken, before packing.
        packed_at: when the batch was packed, which is its hand-over.
    """
    ready = max(group.completed_at for group in groups)
    assembly = packed_at - taken_at
    generated = max(0.0, ready - previous_handover)
    attribution = dict.fromkeys(PHASES, 0.0)
    straggler = dict.fromkeys(BUSY, 0.0)
    if generated > 0:
        alone_from = _alone_from(groups, previous_handover, ready)
        for phase, start, end in _along(groups, previous_handover, ready):
            attribution[phase] += max(0.0, min(end, alone_from) - start)
            straggler[phase] += max(0.0, end - max(start, alone_from))
        attribution["straggler"] = sum(straggler.values())
    attribution["assembly"] += assembly
    return BatchTiming(
        t2tb_s=generated + assembly,
        attribution=attribution,
        straggler=straggler,
        learner_wait_s=taken_at - asked_at,
        pool_wait_s=max(0.0, asked_at - ready),
        age_s=packed_at - min(group.draw.dispatched_at for group in groups),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of the sorted values lie, linear between neighbours; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _alone_from(groups: Sequence[CompleteGroup], start: float, end: float) -> float:
    """The moment in start..end from which one group alone was waited for."""
    *others, _last = sorted(group.completed_at for group in groups)
    return min(max(others[-1], start), end) if others else end


def _along(groups: Sequence[CompleteGroup], start: float, end: float) -> Iterable[tuple[str, float, float]]:
    """(phase, its start, its end) that fill start..end without gap or overlap."""
    last = max(groups, key=lambda group: group.completed_at)
    critical = max(last.members, key=lambda member: member.ended_at)
    at = start
    for phase, until in [*_phases(last, critical), ("other", end)]:
        stop = min(max(until, at), end)
        yield phase, at, stop
        at = stop


def _phases(group: CompleteGroup, member: EndedMember) -> list[tuple[str, float]]:
    """(phase, its end) of one member's life, in order."""
    stamps, times = member.record.stamps, member.record.times
    begun = member.started_at
    ends = [("queue", group.draw.dispatched_at), ("queue", begun)]
    for phase, stamp in (("acquire", "acquired"), ("prefill", "first_token")):
        if stamp in stamps:
            ends.append((phase, begun + stamps[stamp]))
    if "last_token" in stamps:
        until = begun + stamps["last_token"]
        since = ends[-1][1]
        decode, tool = times.decode_s or 0.0, times.tool_s or 0.0
        share = decode / (decode + tool) if decode + tool else 1.0
        ends += [("decode", since + (until - since) * share), ("tool", until)]
    if "verify_start" in stamps:
        ends.append(("tool", begun + stamps["verify_start"]))
    if "verified" in stamps:
        ends.append(("verify", begun + stamps["verified"]))
    return ends

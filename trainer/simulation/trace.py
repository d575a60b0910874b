"""What a simulation is fed: groups with known durations, in dispatch order.

Time inside a simulation is integer microseconds, so that events that are equal in decimal are equal, whatever sums led
to them; seconds go in and come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TICKS_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceGroup:
    """A group's members: how long each runs, whether it passes; ``expected_s`` is the mean known before the run."""

    id: str
    durations_s: tuple[float, ...]
    passed: tuple[bool, ...]
    expected_s: float | None = None


@dataclass(frozen=True, slots=True)
class Last:
    """The member whose end made something complete: its group, its place there, and when it started."""

    group: str
    place: int
    started_s: float


@dataclass(frozen=True, slots=True)
class Share:
    """Composition of a set of trajectories; means are `None` for an empty one."""

    trajectories: int
    mean_duration_s: float | None
    pass_rate: float | None


def composition(members: Iterable[tuple[float, bool]]) -> Share:
    """Count, mean duration and pass rate of ``(duration_s, passed)`` pairs; full durations, also of those cut short."""
    pairs = list(members)
    n = len(pairs)
    if not n:
        return Share(0, None, None)
    return Share(n, sum(ticks(d) for d, _ in pairs) / n / TICKS_PER_S, sum(p for _, p in pairs) / n)


def members_of(groups: Sequence[TraceGroup]) -> list[tuple[float, bool]]:
    """All ``(duration_s, passed)`` of ``groups``."""
    return [pair for group in groups for pair in zip(group.durations_s, group.passed, strict=True)]


def ticks(duration_s: float) -> int:
    """Seconds as integer microseconds."""
    return round(duration_s * TICKS_PER_S)

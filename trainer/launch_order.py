"""In which order the members of several groups start when slots are scarce.

A pure decision for plans over a batch whose groups are all known, as the simulation makes them. The running dispatcher
starts groups as they are drawn: with carry-over no slot waits for a batch's end, and longest first shortened nothing
(docs/explanation/log.md; ``envsdk bench collect`` has both arms). Siblings stay adjacent except under ``interleaved``,
since a group trains only when its last member has ended; longest first is Graham's list scheduling (1969).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LaunchOrder = Literal["group_order", "longest_first", "interleaved"]


@dataclass(frozen=True, slots=True)
class Launch:
    """Member number ``place`` of the group at position ``group`` of the given list."""

    group: int
    place: int


def launch_order(sizes: Sequence[int], expected_s: Sequence[float | None], *, order: LaunchOrder) -> list[Launch]:
    """Every member of every group, in the order in which they should start.

    Args:
        sizes: members of each group.
        expected_s: mean duration of each group known from history, `None` where there is none: an unknown group starts
            first, as if it were the longest.
        order: ``group_order`` as given; ``longest_first`` by expected duration, descending, ties as given;
            ``interleaved`` the first members of all groups, then the second ones.
    """
    groups = range(len(sizes))
    if order == "interleaved":
        return [Launch(g, i) for i in range(max(sizes, default=0)) for g in groups if i < sizes[g]]
    if order == "longest_first":
        groups = sorted(groups, key=lambda g: -_or_longest(expected_s[g]))  # type: ignore[assignment]
    return [Launch(g, i) for g in groups for i in range(sizes[g])]


def _or_longest(expected_s: float | None) -> float:
    return float("inf") if expected_s is None else expected_s

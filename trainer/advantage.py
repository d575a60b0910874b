"""Group advantages: how much better each episode did than its siblings.

Promises: an excluded member changes nothing (law 3), a group that carries no information gives exactly 0.0, advantages
of a group do not depend on the order of its members, and a valid member without a finite reward is an error, never
cleaned. Does not promise anything about which group an episode belongs to: grouping is by the given id alone.

Legend: V valid members of one group, k = |V|, m their mean reward, s = sqrt(sum (R - m)^2 / (k - ddof)).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Estimator = Literal["grpo", "dr_grpo", "rloo", "maxrl"]
NoSignal = Literal["empty", "singleton", "zero_variance", "zero_mean"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)


@dataclass(frozen=True, slots=True)
class GroupStats:
    """What one group's valid members say. ``reason`` is why the group trains nothing, `None` where it trains."""

    n_valid: int
    mean: float | None
    std: float | None
    reason: NoSignal | None

    @property
    def no_signal(self) -> bool:
        """True where every advantage of the group is exactly 0."""
        return self.reason is not None


@dataclass(frozen=True, slots=True)
class Advantages:
    """``values``: [N] one advantage per rollout, 0.0 for an excluded member. ``groups``: statistics per group id."""

    values: tuple[float, ...]
    groups: dict[Hashable, GroupStats]


def group_advantages(
    rewards: Sequence[float | None],
    groups: Sequence[Hashable],
    valid: Sequence[bool],
    *,
    estimator: Estimator = "dr_grpo",
    eps: float = 1e-6,
    ddof: int = 0,
) -> Advantages:
    """Advantages of N rollouts, each against the valid members of its own group.

    Args:
        rewards: [N] reward, or `None` where there is none; what stands at an excluded member is never read.
        groups: [N] group id; groups may be interleaved and of unequal size.
        valid: [N] False where the rollout is out of the baseline.
        estimator: ``grpo`` (R - m) / (s + eps), arXiv 2402.03300; ``dr_grpo`` R - m, 2503.20783; ``rloo``
            k / (k - 1) (R - m), 2402.14740; ``maxrl`` (R - m) / m for rewards >= 0, 2602.02710.
        eps: added to the standard deviation, outside the root; ``grpo`` only.
        ddof: 0 or 1, what the standard deviation's divisor lacks.

    Raises:
        ValueError: a valid member's reward is missing or not finite; the lists differ in length; an unknown estimator.
    """
    if not len(rewards) == len(groups) == len(valid):
        raise ValueError(
            f"{len(rewards)} rewards, {len(groups)} group ids and {len(valid)} validity flags: one of each per rollout"
        )
    if estimator not in ESTIMATORS:
        raise ValueError(f"unknown estimator {estimator!r}: one of {', '.join(ESTIMATORS)}")
    if ddof not in (0, 1):
        raise ValueError(f"ddof is {ddof}: 0 or 1")
    members: dict[Hashable, list[int]] = {group: [] for group in groups}
    for i, (group, counts) in enumerate(zip(groups, valid, strict=True)):
        if counts:
            members[group].append(i)
    values = [0.0] * len(rewards)
    stats: dict[Hashable, GroupStats] = {}
    for group, indices in members.items():
        numbers = [_finite(rewards[i], i, group) for i in indices]
        stats[group], advantages = _one_group(numbers, estimator, eps, ddof)
        for i, advantage in zip(indices, advantages, strict=True):
            values[i] = advantage
    return Advantages(tuple(values), stats)


def _finite(reward: float | None, index: int, group: Hashable) -> float:
    if reward is None or not math.isfinite(reward):
        raise ValueError(
            f"rollout {index} of group {group!r} is valid but its reward is {reward}: exclude it or score it"
        )
    return float(reward)


def _one_group(rewards: list[float], estimator: Estimator, eps: float, ddof: int) -> tuple[GroupStats, list[float]]:
    k = len(rewards)
    if k == 0:
        return GroupStats(0, None, None, "empty"), []
    low = min(rewards)
    # Relative to the lowest reward, so that a common offset cancels exactly; fsum, so that the order does not matter.
    above_low = [reward - low for reward in rewards]
    mean_above = math.fsum(above_low) / k
    mean = low + mean_above
    if k == 1:
        return GroupStats(1, mean, None, "singleton"), [0.0]
    if max(rewards) == low:
        return GroupStats(k, low, 0.0, "zero_variance"), [0.0] * k
    centred = [x - mean_above for x in above_low]
    scale = max(abs(x) for x in centred)
    std = scale * math.sqrt(math.fsum((x / scale) ** 2 for x in centred) / (k - ddof))
    if estimator == "maxrl" and mean <= 0:
        return GroupStats(k, mean, std, "zero_mean"), [0.0] * k
    match estimator:
        case "grpo":
            advantages = [x / (std + eps) for x in centred]
        case "dr_grpo":
            advantages = centred
        case "rloo":
            advantages = [x * k / (k - 1) for x in centred]
        case "maxrl":
            advantages = [x / mean for x in centred]
    return GroupStats(k, mean, std, None), advantages

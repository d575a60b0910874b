"""An interval for a pass rate whose episodes come in clusters: several attempts at each task.

Attempts at one task resemble each other, so n attempts say less than n coins. The variance between tasks gives the
design effect; the Wilson interval is taken at the effective sample size, with Student's quantile for few tasks. Unlike
the plain cluster interval it has a width even where every task gave the same rate, and never leaves [0, 1].
Source: Wilson 1927; design effect after Kish 1965.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateInterval:
    """``rate`` with its bounds; all `None` where nothing was scored. ``n`` episodes of ``clusters`` tasks."""

    rate: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int


def clustered_rate(passed: Iterable[Sequence[bool]], *, confidence: float = 0.95) -> RateInterval:
    """Pass rate over all attempts with an interval clustered by task.

    Args:
        passed: for each task, whether each of its scored attempts passed; tasks without any are left out.
        confidence: two-sided.
    """
    from scipy.stats import t as student

    tasks = [list(attempts) for attempts in passed if len(attempts)]
    n, clusters = sum(len(attempts) for attempts in tasks), len(tasks)
    if n == 0:
        return RateInterval(None, None, None, 0, 0)
    rate = sum(sum(attempts) for attempts in tasks) / n
    effective = n / _design_effect(tasks, rate, n)
    quantile = float(student.ppf(0.5 + confidence / 2, max(1, clusters - 1)))
    low, high = _wilson(rate, effective, quantile)
    return RateInterval(rate, low, high, n, clusters)


def _design_effect(tasks: Sequence[Sequence[bool]], rate: float, n: int) -> float:
    """How much less an attempt says than an independent one; at least 1, at most the mean attempts per task."""
    clusters = len(tasks)
    binomial = n * rate * (1 - rate)
    if clusters < 2 or binomial == 0:
        return n / clusters  # no variance to learn from: assume that a task's attempts are one
    between = sum((sum(attempts) - rate * len(attempts)) ** 2 for attempts in tasks) * clusters / (clusters - 1)
    return max(1.0, between / binomial)


def _wilson(rate: float, n: float, z: float) -> tuple[float, float]:
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # Rounding may leave a bound a hair on the wrong side of a rate of 0 or 1.
    return min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half))

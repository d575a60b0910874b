"""The ability of a new policy from its first episodes, the tasks' difficulties being known.

One episode on each of the 20 to 40 tasks nearest in difficulty is enough to start from: its posterior then predicts a
prior for every other task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from registry.calibration.rasch import PRIOR_SD

_GRID = 97
"""Starting points at which the posterior is looked at before Newton's steps."""


@dataclass(frozen=True, slots=True)
class Ability:
    """Posterior mode of theta and its Laplace standard error."""

    theta: float
    se: float


def ability(b: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, log_m: float, steps: int = 100) -> Ability:
    """Fit theta with ``b`` and ``log_m`` fixed. All sequences have one entry a task.

    Safeguarded Newton steps from the best point of a grid: a policy that passes hard tasks and fails easy ones has a
    posterior with two maxima.

    Raises:
        ValueError: the sequences differ in length, or a count is impossible.
    """
    hard, k, n = (np.asarray(values, dtype=np.float64) for values in (b, passes, trials))
    if not hard.shape == k.shape == n.shape or not ((k >= 0) & (k <= n)).all():
        raise ValueError("b, passes and trials must be as long as each other, and passes at most trials")
    m = float(np.exp(log_m))
    grid = np.linspace(hard.min(initial=0.0) - 5 * PRIOR_SD, hard.max(initial=0.0) + 5 * PRIOR_SD, _GRID)
    spacing = float(grid[1] - grid[0])
    theta = float(grid[int(np.argmax([_value(float(at), hard, k, n, m) for at in grid]))])
    low, high = theta - spacing, theta + spacing
    for _ in range(steps):
        slope, curvature = _derivatives(theta, hard, k, n, m)
        low, high = (theta, high) if slope > 0 else (low, theta)
        step = slope / curvature if curvature > 0 else 0.0
        following = theta + step
        if not low < following < high or step == 0.0:
            following = 0.5 * (low + high) if slope else theta
        if abs(following - theta) < 1e-13:
            break
        theta = following
    _, curvature = _derivatives(theta, hard, k, n, m)
    return Ability(theta, float(1.0 / np.sqrt(curvature)))


def predicted(theta: float, b: ArrayLike) -> list[float]:
    """Pass rates that ``theta`` predicts on tasks of difficulties ``b``."""
    return [float(p) for p in special.expit(theta - np.asarray(b, dtype=np.float64))]


def _value(theta: float, b: np.ndarray, passes: np.ndarray, trials: np.ndarray, m: float) -> float:
    """Log posterior in theta, up to what does not depend on it."""
    a, c = m * special.expit(theta - b), m * special.expit(b - theta)
    rising = special.betaln(a + passes, c + trials - passes) - special.betaln(a, c)
    return float(np.sum(rising)) - 0.5 * (theta / PRIOR_SD) ** 2


def _derivatives(theta: float, b: np.ndarray, passes: np.ndarray, trials: np.ndarray, m: float) -> tuple[float, float]:
    """Slope of the log posterior in theta, and its negative second derivative."""
    pi, rest = special.expit(theta - b), special.expit(b - theta)
    a, c, w = m * pi, m * rest, m * pi * rest
    up = special.psi(a + passes) - special.psi(a)
    down = special.psi(c + trials - passes) - special.psi(c)
    up2 = special.polygamma(1, a + passes) - special.polygamma(1, a)
    down2 = special.polygamma(1, c + trials - passes) - special.polygamma(1, c)
    slope = float(np.sum(w * (up - down))) - theta / PRIOR_SD**2
    second = float(np.sum(w * w * (up2 + down2) + w * (rest - pi) * (up - down))) - 1.0 / PRIOR_SD**2
    return slope, -second

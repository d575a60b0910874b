"""Intervals of a binomial share: right within one model-task cell, wrong across models (Brown, Cai, DasGupta 2001)."""

from __future__ import annotations

import math

from scipy import special


def wilson(k: int, n: int, *, conf: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval; (0, 1) where nothing was tried.

    Raises:
        ValueError: ``k`` is not from 0 to ``n``.
    """
    _check(k, n)
    if n == 0:
        return 0.0, 1.0
    z = float(special.ndtri((1.0 + conf) / 2.0))
    p = k / n
    centre = p + z * z / (2 * n)
    reach = z * math.sqrt(p * (1.0 - p) / n + z * z / (4 * n * n))
    scale = 1.0 + z * z / n
    low = 0.0 if k == 0 else (centre - reach) / scale
    high = 1.0 if k == n else (centre + reach) / scale
    return low, high


def jeffreys(k: int, n: int, *, conf: float = 0.95) -> tuple[float, float]:
    """Equal-tailed interval of Beta(k + 1/2, n - k + 1/2), not moved to 0 or 1 at the ends.

    Raises:
        ValueError: ``k`` is not from 0 to ``n``.
    """
    _check(k, n)
    tail = (1.0 - conf) / 2.0
    a, b = k + 0.5, n - k + 0.5
    return float(special.betaincinv(a, b, tail)), float(special.betainccinv(a, b, tail))


def _check(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no count")

"""Re-opening what was saturated: a Bernoulli CUSUM over its re-tests (Page 1954).

S rises when outcomes look like a pass rate of q rather than r. With the defaults a false alarm comes about once in
1,360 re-tests at 0.95; a fall to 0.7 is caught after about 14, to 0.5 after 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

R, Q = 0.95, 0.70
ALARM = 5.0


def cusum_step(s: float, passed: bool, *, r: float = R, q: float = Q) -> float:
    """S after one more graded re-test."""
    return max(0.0, s + (math.log(q / r) if passed else math.log((1.0 - q) / (1.0 - r))))


def cusum_path(
    outcomes: Iterable[bool | None], *, r: float = R, q: float = Q, h: float = ALARM
) -> tuple[list[float], int | None]:
    """S after each graded outcome up to the alarm, and the alarm's 1-based number; ungraded outcomes are skipped."""
    path: list[float] = []
    s = 0.0
    for passed in outcomes:
        if passed is None:
            continue
        s = cusum_step(s, bool(passed), r=r, q=q)
        path.append(s)
        if s >= h:
            return path, len(path)
    return path, None

"""Evidence that a task is saturated, which looking often cannot fool; and which tasks of a set to retire on it.

E is a test martingale under "pass rate at most p0": the chance that it ever reaches 20 is at most 1/20, however
often one looks (arXiv 2210.01948). It runs on raw outcomes: decayed counts would break the martingale. `e_bh`
controls the false discovery rate of a set's retirements under any dependence (arXiv 2009.02824).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

P0, P1 = 0.9, 0.99
THRESHOLD = 20.0
FALSE_DISCOVERY = 0.05


def e_step(e_value: float, passed: bool, *, p0: float = P0, p1: float = P1) -> float:
    """E after one more graded outcome."""
    return e_value * (p1 / p0 if passed else (1.0 - p1) / (1.0 - p0))


def e_path(
    outcomes: Iterable[bool | None], *, p0: float = P0, p1: float = P1, threshold: float = THRESHOLD
) -> tuple[list[float], int | None]:
    """E after each graded outcome, and the 1-based number of the first at or over ``threshold``; ungraded are skipped.

    Later falls do not take a confirmation back.
    """
    path: list[float] = []
    confirmed = None
    e_value = 1.0
    for passed in outcomes:
        if passed is None:
            continue
        e_value = e_step(e_value, bool(passed), p0=p0, p1=p1)
        path.append(e_value)
        if confirmed is None and e_value >= threshold:
            confirmed = len(path)
    return path, confirmed


def e_bh(e_values: Sequence[float], *, alpha: float = FALSE_DISCOVERY) -> list[int]:
    """Indices to retire, ascending: the k largest, k being the largest with ``e_(k) >= J / (k alpha)``."""
    order = sorted(range(len(e_values)), key=lambda index: (-e_values[index], index))
    passing = [
        rank
        for rank, index in enumerate(order, start=1)
        if e_values[index] * rank * alpha >= len(e_values) * (1.0 - 1e-15)
    ]
    return sorted(order[: max(passing, default=0)])

"""pass@k (arXiv 2107.03374) and pass^k (arXiv 2406.12045), exact: both are ratios of whole numbers."""

from __future__ import annotations

from fractions import Fraction
from math import comb


def pass_at_k(n: int, c: int, k: int) -> Fraction:
    """Chance that at least one of ``k`` drawn without replacement from ``n`` attempts with ``c`` passes has passed.

    Raises:
        ValueError: more are drawn than there are, or the counts are impossible.
    """
    _check(n, c, k)
    return 1 - Fraction(comb(n - c, k), comb(n, k))


def pass_hat_k(n: int, c: int, k: int) -> Fraction:
    """Chance that all ``k`` have passed. Raises as `pass_at_k` does."""
    _check(n, c, k)
    return Fraction(comb(c, k), comb(n, k))


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"k = {k} of n = {n} attempts with c = {c} passes is impossible")

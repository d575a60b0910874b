"""Rising factorials a (a + 1) ... (a + k - 1) of many cells: their logs and the derivatives in a.

They are differences of gamma functions. Counts of trials are small whole numbers, though, and a product of k terms
is then cheaper and more exact than two gamma functions: cells are sorted by count once, and factor t touches a
prefix of them. For larger counts the difference is taken term by term of Stirling's series where the base is large
(Abramowitz and Stegun 6.1.41, 6.3.18, 6.4.12): the two functions themselves would agree in nearly all digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[Any]
_MOST_FACTORS = 64
"""Above this many factors gamma functions are cheaper."""
_BLOCK = 8
"""So many factors stay in the range of a double, up to a base of 1e38; the product of all may not."""
_STIRLING_FROM = 32.0
"""From this base on the series below are exact to the last digits of a double."""


@dataclass(frozen=True, slots=True)
class Rising:
    """Counts of all cells, prepared. ``order`` are the cells with a small count, largest first; ``many`` the others.

    ``reach[t]`` is how many cells of ``order`` have a factor t.
    """

    size: int
    order: NDArray[np.intp]
    reach: NDArray[np.intp]
    many: NDArray[np.intp]
    many_counts: Floats

    @classmethod
    def of(cls, counts: Floats) -> Rising:
        """Prepare counts, which are not negative; 0 has an empty product, whose log and derivatives are 0."""
        small = (counts > 0) & (counts <= _MOST_FACTORS) & (counts == np.floor(counts))
        chosen = np.flatnonzero(small)
        order = chosen[np.argsort(-counts[chosen], kind="stable")]
        per_count = np.bincount(counts[order].astype(np.intp), minlength=1)
        reach = len(order) - np.cumsum(per_count)[:-1]
        many = np.flatnonzero((counts > 0) & ~small)
        return cls(len(counts), order, reach, many, counts[many])

    def log_and_slope(self, base: Floats) -> tuple[Floats, Floats]:
        """Log of the product, and its first derivative in the base; both as long as the counts."""
        log, first = np.zeros(self.size), np.zeros(self.size)
        mine = base[self.order]
        total, slope = np.zeros(len(mine)), np.zeros(len(mine))
        product = np.ones(len(mine))
        for factor, cells in enumerate(self.reach):
            term = mine[:cells] + factor
            product[:cells] *= term
            slope[:cells] += 1.0 / term
            if factor % _BLOCK == _BLOCK - 1:
                total[:cells] += np.log(product[:cells])
                product[:cells] = 1.0
        log[self.order], first[self.order] = total + np.log(product), slope
        log[self.many] = _log_ratio(base[self.many], self.many_counts)
        first[self.many] = _psi_difference(base[self.many], self.many_counts)
        return log, first

    def slopes(self, base: Floats) -> tuple[Floats, Floats]:
        """First and second derivative of the log of the product in the base."""
        first, second = np.zeros(self.size), np.zeros(self.size)
        mine = base[self.order]
        slope, bend = np.zeros(len(mine)), np.zeros(len(mine))
        for factor, cells in enumerate(self.reach):
            term = 1.0 / (mine[:cells] + factor)
            slope[:cells] += term
            bend[:cells] -= term * term
        first[self.order], second[self.order] = slope, bend
        first[self.many] = _psi_difference(base[self.many], self.many_counts)
        second[self.many] = _trigamma_difference(base[self.many], self.many_counts)
        return first, second


def _log_ratio(a: Floats, k: Floats) -> Floats:
    """Log of gamma(a + k) / gamma(a)."""
    top, x = a + k, np.maximum(a, _STIRLING_FROM)
    y = x + k
    series = (x - 0.5) * np.log1p(k / x) + k * np.log(y) - k
    series += (1.0 / y - 1.0 / x) / 12.0 - (y**-3 - x**-3) / 360.0 + (y**-5 - x**-5) / 1260.0
    return np.asarray(np.where(a < _STIRLING_FROM, special.gammaln(top) - special.gammaln(a), series))


def _psi_difference(a: Floats, k: Floats) -> Floats:
    """First derivative of `_log_ratio` in a."""
    top, x = a + k, np.maximum(a, _STIRLING_FROM)
    y = x + k
    series = np.log1p(k / x) + 0.5 * (k / (x * y)) + (x**-2 - y**-2) / 12.0
    series += (y**-4 - x**-4) / 120.0 + (x**-6 - y**-6) / 252.0
    return np.asarray(np.where(a < _STIRLING_FROM, special.psi(top) - special.psi(a), series))


def _trigamma_difference(a: Floats, k: Floats) -> Floats:
    """Second derivative of `_log_ratio` in a."""
    top, x = a + k, np.maximum(a, _STIRLING_FROM)
    y = x + k
    series = -(k / (x * y)) + (y**-2 - x**-2) / 2.0 + (y**-3 - x**-3) / 6.0
    series += (x**-5 - y**-5) / 30.0 + (y**-7 - x**-7) / 42.0
    return np.asarray(np.where(a < _STIRLING_FROM, special.polygamma(1, top) - special.polygamma(1, a), series))

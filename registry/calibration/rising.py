"""Rising factorials a (a + 1) ... (a + k - 1) of many cells: their logs and the derivatives in a.

They are differences of gamma functions. Counts of trials are small whole numbers, though, and a product of k terms
is then cheaper and more exact than two gamma functions: cells are sorted by count once, and factor t touches a
prefix of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[Any]
_MOST_FACTORS = 64
"""Above this many factors gamma functions are cheaper, and a product could leave the range of a double."""


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
        product, slope = np.ones(len(mine)), np.zeros(len(mine))
        for factor, cells in enumerate(self.reach):
            term = mine[:cells] + factor
            product[:cells] *= term
            slope[:cells] += 1.0 / term
        log[self.order], first[self.order] = np.log(product), slope
        a, top = base[self.many], base[self.many] + self.many_counts
        log[self.many] = special.gammaln(top) - special.gammaln(a)
        first[self.many] = special.psi(top) - special.psi(a)
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
        a, top = base[self.many], base[self.many] + self.many_counts
        first[self.many] = special.psi(top) - special.psi(a)
        second[self.many] = special.polygamma(1, top) - special.polygamma(1, a)
        return first, second

"""Solve with the Rasch model's curvature without ever forming it.

The matrix of theta [I], b [J] and log m is two diagonal blocks, the table of cross terms [I, J] and one border.
Taking out the longer diagonal leaves a dense matrix of the shorter side only: 10,000 tasks by 200 models need 201 x
201 numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]


@dataclass(frozen=True)
class Arrow:
    """A symmetric positive definite matrix ``[[D, C], [C', R]]``: D diagonal and long, R dense and short.

    ``order`` says where each row of (long, short) stands in the caller's order theta, b, log m.
    """

    diagonal: Floats
    coupling: Floats
    rest: Floats
    order: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        *,
        theta_diagonal: Floats,
        b_diagonal: Floats,
        cross: Floats,
        theta_border: Floats,
        b_border: Floats,
        corner: float,
    ) -> Arrow:
        """From the blocks of theta and b, their cross terms [I, J], and the border and corner of log m."""
        models, tasks = cross.shape
        long_is_b = tasks >= models
        long_diagonal, short_diagonal = (b_diagonal, theta_diagonal) if long_is_b else (theta_diagonal, b_diagonal)
        long_border, short_border = (b_border, theta_border) if long_is_b else (theta_border, b_border)
        table = cross.T if long_is_b else cross
        rest = np.zeros((len(short_diagonal) + 1,) * 2)
        np.fill_diagonal(rest, [*short_diagonal, corner])
        rest[-1, :-1] = rest[:-1, -1] = short_border
        theta, b = np.arange(models), np.arange(models, models + tasks)
        order = np.concatenate([b, theta] if long_is_b else [theta, b])
        return cls(long_diagonal, np.column_stack([table, long_border]), rest, np.append(order, models + tasks))

    @cached_property
    def schur_inverse(self) -> Floats:
        """Inverse of R - C' D^-1 C: the covariance of the short side."""
        scaled = self.coupling / self.diagonal[:, None]
        inverse: Floats = np.linalg.inv(self.rest - self.coupling.T @ scaled)
        return inverse

    def solve(self, vector: Floats) -> Floats:
        """The matrix's inverse times ``vector``, in the caller's order."""
        mine = vector[self.order]
        long, short = mine[: len(self.diagonal)], mine[len(self.diagonal) :]
        below = self.schur_inverse @ (short - self.coupling.T @ (long / self.diagonal))
        above = (long - self.coupling @ below) / self.diagonal
        return self._back(above, below)

    def inverse_diagonal(self) -> Floats:
        """The diagonal of the inverse, in the caller's order."""
        scaled = self.coupling / self.diagonal[:, None]
        above = 1.0 / self.diagonal + np.einsum("ij,ij->i", scaled @ self.schur_inverse, scaled)
        return self._back(above, np.diag(self.schur_inverse))

    def _back(self, above: Floats, below: Floats) -> Floats:
        out = np.empty(len(self.order))
        out[self.order] = np.concatenate([above, below])
        return out

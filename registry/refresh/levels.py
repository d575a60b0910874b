"""Predict a family's pass rate at levels that were never drawn: a regression on levels, learned from outcomes.

    k_j ~ BetaBinomial(n_j, m p_j, m (1 - p_j)),   p_j = sigmoid(w . x(level_j)),   w, log m ~ N(0, 2^2)

m says how far draws of one level differ from each other, so the interval is one for the pass rate of a *new draw*,
not for the mean of its level: uncertainty of w and m, and the spread between draws, are all in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from registry.calibration.rising import Rising
from registry.saturation.posterior import LEVEL

Floats = NDArray[Any]
Scalar = str | int | float | bool
Level = Mapping[str, Scalar]
BAND = (0.2, 0.8)
"""Pass rates at which most groups are mixed, so that there is something to learn."""
_PRIOR_SD = 2.0
_DRAWS = 4_000


@dataclass(frozen=True, slots=True)
class Seen:
    """A drawn task's level and its graded outcomes; counts may be decayed."""

    level: Level
    passes: float
    trials: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Pass rate of a new draw: mean, equal-tailed 90 % interval, and how likely it lies in the band."""

    mean: float
    low: float
    high: float
    in_band: float


@dataclass(frozen=True, slots=True)
class _Column:
    knob: str
    value: Scalar | None
    centre: float
    scale: float

    def of(self, level: Level) -> float:
        given = level.get(self.knob)
        if self.value is not None:
            return float(given == self.value and type(given) is type(self.value))
        number = float(given) if isinstance(given, int | float) else self.centre
        return (number - self.centre) / self.scale


@dataclass(frozen=True, slots=True)
class LevelModel:
    """A fitted regression: `predict` any level. ``tasks``: how many drawn tasks with outcomes stand behind it."""

    columns: tuple[_Column, ...]
    mode: Floats
    covariance: Floats
    tasks: int

    def predict(self, level: Level) -> Prediction:
        """The pass rate of a new draw at ``level``; the same for the same model on every machine."""
        rng = np.random.default_rng(0)
        parameters = rng.multivariate_normal(self.mode, self.covariance, size=_DRAWS, method="cholesky")
        x = _row(self.columns, level)
        mean = np.clip(special.expit(parameters[:, :-1] @ x), 1e-9, 1.0 - 1e-9)
        m = np.exp(np.clip(parameters[:, -1], -6.0, 12.0))
        rates = rng.beta(np.maximum(m * mean, 1e-6), np.maximum(m * (1.0 - mean), 1e-6))
        tail = (1.0 - LEVEL) / 2.0
        low, high = np.quantile(rates, [tail, 1.0 - tail])
        in_band = float(np.mean((rates >= BAND[0]) & (rates <= BAND[1])))
        return Prediction(float(rates.mean()), float(low), float(high), in_band)


def fit_levels(seen: Iterable[Seen]) -> LevelModel:
    """Fit a family's outcomes; without any, the model is its prior and every level looks alike."""
    graded = [one for one in seen if one.trials > 0]
    columns = _columns([one.level for one in graded])
    x = np.array([_row(columns, one.level) for one in graded]).reshape(len(graded), len(columns) + 1)
    k = np.array([one.passes for one in graded])
    n = np.array([one.trials for one in graded])
    likelihood = _Likelihood(x, Rising.of(k), Rising.of(n - k), Rising.of(n))
    found = optimize.minimize(likelihood, np.zeros(x.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-6})
    curvature = likelihood.curvature(found.x)
    # Away from the very maximum rounding can leave a direction flat; the prior's curvature is the least there is.
    values, vectors = np.linalg.eigh(curvature)
    covariance = (vectors / np.maximum(values, 1.0 / _PRIOR_SD**2)) @ vectors.T
    return LevelModel(columns, found.x, covariance, len(graded))


@dataclass(frozen=True, slots=True)
class _Likelihood:
    x: Floats
    passes: Rising
    fails: Rising
    trials: Rising

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        """Negative log posterior without constants, and its gradient."""
        m, p, q = self._rates(parameters)
        log_up, up = self.passes.log_and_slope(m * p)
        log_down, down = self.fails.log_and_slope(m * q)
        log_both, both = self.trials.log_and_slope(np.full(len(p), m))
        grad = np.empty_like(parameters)
        grad[:-1] = self.x.T @ (m * p * q * (up - down))
        grad[-1] = m * np.sum(p * up + q * down - both)
        value = float(np.sum(log_up + log_down - log_both))
        penalty = 0.5 * float(parameters @ parameters) / _PRIOR_SD**2
        return penalty - value, parameters / _PRIOR_SD**2 - grad

    def curvature(self, parameters: Floats) -> Floats:
        """Negative Hessian of the log posterior."""
        m, p, q = self._rates(parameters)
        a, c, w = m * p, m * q, m * p * q
        up, up2 = self.passes.slopes(a)
        down, down2 = self.fails.slopes(c)
        both, both2 = self.trials.slopes(np.full(len(p), m))
        d_dd = w * w * (up2 + down2) + w * (q - p) * (up - down)
        d_dm = w * (up - down) + w * (a * up2 - c * down2)
        d_mm = float(np.sum(a * up + c * down + a * a * up2 + c * c * down2 - m * both - m * m * both2))
        size = len(parameters)
        hessian = np.zeros((size, size))
        hessian[:-1, :-1] = self.x.T @ (self.x * d_dd[:, None])
        hessian[-1, :-1] = hessian[:-1, -1] = self.x.T @ d_dm
        hessian[-1, -1] = d_mm
        return np.eye(size) / _PRIOR_SD**2 - hessian

    def _rates(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        logits = self.x @ parameters[:-1]
        m = float(np.exp(np.clip(parameters[-1], -20.0, 20.0)))
        return m, np.maximum(special.expit(logits), 1e-12), np.maximum(special.expit(-logits), 1e-12)


def _columns(levels: Sequence[Level]) -> tuple[_Column, ...]:
    """Numbers are centred and scaled; each other value of a knob but the first gets a column of its own."""
    columns: list[_Column] = []
    for knob in sorted({knob for level in levels for knob in level}):
        values = [level[knob] for level in levels if knob in level]
        numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(numbers) == len(values):
            spread = float(np.std(numbers))
            if spread > 0:
                columns.append(_Column(knob, None, float(np.mean(numbers)), spread))
            continue
        distinct = sorted({(type(value).__name__, str(value)): value for value in values}.items())
        columns += [_Column(knob, value, 0.0, 1.0) for _, value in distinct[1:]]
    return tuple(columns)


def _row(columns: Sequence[_Column], level: Level) -> Floats:
    return np.array([1.0, *(column.of(level) for column in columns)])

"""Predict a family's pass rate at levels that were never drawn: a regression on levels, learned from outcomes.

    k_j ~ BetaBinomial(n_j, m p_j, m (1 - p_j)),   p_j = sigmoid(g(level_j) + w . x(level_j)),   w, log m ~ N(0, 2^2)

m says how far draws of one level differ from each other, so the interval is one for the pass rate of a *new draw*,
not for the mean of its level: uncertainty of w and m, and the spread between draws, are all in it. g is the logit of
the author's guess, where there is one: outcomes say how far this policy is from it, and at a level that was never
drawn it is all there is. x holds every value that the family has, drawn or not, so that the interval at a value that
was never drawn is as wide as what is not known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
_SUREST_GUESS = 0.02
"""An author's guess is taken for no nearer to 0 or 1 than this."""
Guess = Callable[[Level], float | None]
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
    """What one knob puts into the regression.

    Whether it has ``value``; or, of a knob of numbers, the place of its number among ``numbers``, at a mean of 0 and a
    standard deviation of 1: lengths of 1, 4, 30 and 200 are four steps, not one step and a giant.
    """

    knob: str
    value: Scalar | None
    numbers: tuple[float, ...] = ()

    def of(self, level: Level) -> float:
        given = level.get(self.knob)
        if self.value is not None:
            return float(given == self.value and type(given) is type(self.value))
        if not isinstance(given, int | float):
            return 0.0
        places = np.arange(len(self.numbers))
        return float((np.interp(float(given), self.numbers, places) - places.mean()) / places.std())


@dataclass(frozen=True, slots=True)
class LevelModel:
    """A fitted regression: `predict` any level. ``tasks``: how many drawn tasks with outcomes stand behind it."""

    columns: tuple[_Column, ...]
    mode: Floats
    covariance: Floats
    tasks: int
    guess: Guess

    def predict(self, level: Level) -> Prediction:
        """The pass rate of a new draw at ``level``; the same for the same model on every machine."""
        rng = np.random.default_rng(0)
        parameters = rng.multivariate_normal(self.mode, self.covariance, size=_DRAWS, method="cholesky")
        x = _row(self.columns, level)
        logits = _offset(self.guess, level) + parameters[:, :-1] @ x
        mean = np.clip(special.expit(logits), 1e-9, 1.0 - 1e-9)
        m = np.exp(np.clip(parameters[:, -1], -6.0, 12.0))
        rates = rng.beta(np.maximum(m * mean, 1e-6), np.maximum(m * (1.0 - mean), 1e-6))
        tail = (1.0 - LEVEL) / 2.0
        low, high = np.quantile(rates, [tail, 1.0 - tail])
        in_band = float(np.mean((rates >= BAND[0]) & (rates <= BAND[1])))
        return Prediction(float(rates.mean()), float(low), float(high), in_band)


def no_guess(_level: Level) -> None:
    """Of an author who made none."""


def fit_levels(seen: Iterable[Seen], *, levels: Iterable[Level] = (), guess: Guess = no_guess) -> LevelModel:
    """Fit a family's outcomes; without any, the model is its prior.

    Args:
        seen: drawn tasks with their outcomes.
        levels: every level that the family has; what is in none of them is predicted as what it comes nearest to.
        guess: the author's guess of the pass rate at a level.
    """
    graded = [one for one in seen if one.trials > 0]
    columns = _columns([*(one.level for one in graded), *levels])
    x = np.array([_row(columns, one.level) for one in graded]).reshape(len(graded), len(columns) + 1)
    k = np.array([one.passes for one in graded])
    n = np.array([one.trials for one in graded])
    offset = np.array([_offset(guess, one.level) for one in graded])
    likelihood = _Likelihood(x, offset, Rising.of(k), Rising.of(n - k), Rising.of(n))
    found = optimize.minimize(likelihood, np.zeros(x.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-6})
    curvature = likelihood.curvature(found.x)
    # Away from the very maximum rounding can leave a direction flat; the prior's curvature is the least there is.
    values, vectors = np.linalg.eigh(curvature)
    covariance = (vectors / np.maximum(values, 1.0 / _PRIOR_SD**2)) @ vectors.T
    return LevelModel(columns, found.x, covariance, len(graded), guess)


@dataclass(frozen=True, slots=True)
class _Likelihood:
    x: Floats
    offset: Floats
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
        logits = self.offset + self.x @ parameters[:-1]
        m = float(np.exp(np.clip(parameters[-1], -20.0, 20.0)))
        return m, np.maximum(special.expit(logits), 1e-12), np.maximum(special.expit(-logits), 1e-12)


def _columns(levels: Sequence[Level]) -> tuple[_Column, ...]:
    """A column for each knob of numbers, and one for each value of any other knob; none for what never differs."""
    columns: list[_Column] = []
    for knob in sorted({knob for level in levels for knob in level}):
        values = [level[knob] for level in levels if knob in level]
        numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if len(numbers) == len(values):
            distinct = sorted(set(numbers))
            if len(distinct) > 1:
                columns.append(_Column(knob, None, tuple(distinct)))
            continue
        known = {(type(value).__name__, str(value)): value for value in values}
        if len(known) > 1:
            # None is left out as the one that the others are measured against: which one is drawn first says nothing.
            columns += [_Column(knob, value) for _, value in sorted(known.items())]
    return tuple(columns)


def _row(columns: Sequence[_Column], level: Level) -> Floats:
    return np.array([1.0, *(column.of(level) for column in columns)])


def _offset(guess: Guess, level: Level) -> float:
    rate = guess(level)
    return 0.0 if rate is None else float(special.logit(np.clip(rate, _SUREST_GUESS, 1.0 - _SUREST_GUESS)))

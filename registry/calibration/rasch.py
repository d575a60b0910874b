"""The beta-binomial Rasch model: how hard each task is, how able each policy, how far trials of one cell agree.

    k_ij ~ BetaBinomial(n_ij, m pi_ij, m (1 - pi_ij)),   pi_ij = sigmoid(theta_i - b_j)
    theta_i, b_j, log m ~ N(0, 2^2)

The maximum of the posterior is found by damped Newton steps over all parameters at once, with L-BFGS where the
curvature does not yet allow them. Standard errors are Laplace's, from this likelihood: plain Rasch with independent
trials makes them 1.6 to 2.3 times too small on real benchmarks. Legend: I = models, J = tasks; tables have shape [I,
J]; n = 0 is no trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from envsdk.errors import UsageError
from registry.calibration.arrow import Arrow
from registry.calibration.rising import Rising

PRIOR_SD = 2.0
_LOG_NORM = float(np.log(PRIOR_SD) + 0.5 * np.log(2.0 * np.pi))
_NEWTON_STEPS = 50
_HALVINGS = 12

Floats = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Responses:
    """Passes of trials, both [I, J]; 0 trials where a model never tried a task."""

    passes: Floats
    trials: Floats

    @classmethod
    def of(cls, passes: Sequence[Sequence[float]], trials: Sequence[Sequence[float]]) -> Responses:
        """Check and convert.

        Raises:
            UsageError: the tables differ in shape, are empty, or hold what is no count (``bad_responses``).
        """
        try:
            found = cls(np.asarray(passes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
        except ValueError as error:
            raise UsageError(f"the tables are ragged: {error}", code="bad_responses") from error
        k, n = found.passes, found.trials
        if k.ndim != 2 or k.shape != n.shape or k.size == 0:
            raise UsageError(f"passes {k.shape} and trials {n.shape} are no tables", code="bad_responses")
        if not (np.isfinite(k).all() and np.isfinite(n).all() and (k >= 0).all() and (k <= n).all()):
            raise UsageError("passes must be from 0 to trials", code="bad_responses")
        return found


@dataclass(frozen=True, slots=True)
class LogPosterior:
    """Value and gradient at one point; ``grad`` is ordered theta, b, log m."""

    log_lik: float
    log_prior: float
    grad: Floats

    @property
    def log_post(self) -> float:
        """Log density of the posterior, up to the evidence."""
        return self.log_lik + self.log_prior


@dataclass(frozen=True, slots=True)
class Parameters:
    """One value per parameter: estimates, or their standard errors. theta [I], b [J]."""

    theta: Floats
    b: Floats
    log_m: float


@dataclass(frozen=True, slots=True)
class RaschFit:
    """A fit on the scale where the mean theta of the panel is 0; ``raw`` is the maximum before the shift.

    ``m`` is the precision of a cell's Beta: small m means that trials of one cell mostly agree.
    """

    theta: Floats
    b: Floats
    m: float
    se: Parameters
    raw: Parameters
    se_raw: Parameters
    shift: float
    log_post: float

    def predicted(self) -> Floats:
        """[I, J] pass rates that the fit predicts."""
        return np.asarray(special.expit(self.theta[:, None] - self.b[None, :]))


def log_posterior(responses: Responses, theta: Floats, b: Floats, log_m: float) -> LogPosterior:
    """Log likelihood (binomial coefficients included), log prior (constants included) and gradient at a point."""
    cells = _Cells(responses)
    x = np.concatenate([theta, b, [log_m]])
    value, grad = cells.likelihood(x)
    return LogPosterior(value + cells.log_binomial, _log_prior(x), grad - x / PRIOR_SD**2)


def fit_rasch(responses: Responses, *, panel: Sequence[int] | None = None) -> RaschFit:
    """Fit abilities, difficulties and over-dispersion together.

    Args:
        responses: the table.
        panel: rows of the models whose mean ability is the zero of the scale; all of them where `None`.

    A table without a trial gives the prior back.
    """
    cells = _Cells(responses)
    models, tasks = cells.shape
    x = _maximum(cells)
    curvature = cells.curvature(x)
    reference = np.zeros(len(x))
    reference[list(range(models)) if panel is None else list(panel)] = 1.0
    reference /= reference.sum()
    shift = float(reference @ x)
    # Delta method: the shift subtracts the panel's mean, which is itself an estimate.
    var = curvature.inverse_diagonal()
    with_panel = curvature.solve(reference)
    shifted = np.sqrt(np.maximum(var - 2.0 * with_panel + float(reference @ with_panel), 0.0))
    se = np.sqrt(var)
    value, _ = cells.likelihood(x)
    theta, b, log_m = x[:models], x[models:-1], float(x[-1])
    return RaschFit(
        theta=theta - shift,
        b=b - shift,
        m=float(np.exp(log_m)),
        se=Parameters(shifted[:models], shifted[models : models + tasks], float(se[-1])),
        raw=Parameters(theta, b, log_m),
        se_raw=Parameters(se[:models], se[models:-1], float(se[-1])),
        shift=shift,
        log_post=value + cells.log_binomial + _log_prior(x),
    )


def _log_prior(x: Floats) -> float:
    return float(-0.5 * np.sum(x * x) / PRIOR_SD**2 - len(x) * _LOG_NORM)


def _maximum(cells: _Cells) -> Floats:
    def objective(x: Floats) -> tuple[float, Floats]:
        value, grad = cells.likelihood(x)
        return -value + 0.5 * float(x @ x) / PRIOR_SD**2, -grad + x / PRIOR_SD**2

    x, converged = _newton(cells, objective, cells.start())
    if converged:
        return x
    # Far from the maximum the curvature may be indefinite; a first-order method brings us near.
    found = optimize.minimize(
        objective, x, jac=True, method="L-BFGS-B", options={"maxiter": 5_000, "maxfun": 20_000, "gtol": 1e-6}
    )
    return _newton(cells, objective, np.asarray(found.x, dtype=np.float64))[0]


def _newton(cells: _Cells, objective: Callable[[Floats], tuple[float, Floats]], x: Floats) -> tuple[Floats, bool]:
    """Damped Newton steps while they go downhill; the last point, and whether its gradient is as good as zero."""
    value, grad = objective(x)
    for _ in range(_NEWTON_STEPS):
        if np.max(np.abs(grad)) < 1e-8:
            return x, True
        step = cells.curvature(x).solve(grad)
        if not float(step @ grad) > 0:
            return x, False
        for halvings in range(_HALVINGS):
            following = x - step * 0.5**halvings
            new_value, new_grad = objective(following)
            if np.isfinite(new_value) and new_value <= value:
                break
        else:
            # Where the value no longer changes in its last digits, the point is as good as a double can tell.
            return x, bool(np.max(np.abs(grad)) < 1e-5)
        x, value, grad = following, new_value, new_grad
    return x, bool(np.max(np.abs(grad)) < 1e-5)


class _Cells:
    """The cells with a trial, flat, with what every evaluation needs prepared once."""

    def __init__(self, responses: Responses) -> None:
        self.shape = responses.trials.shape
        self.i, self.j = np.nonzero(responses.trials)
        self.k = responses.passes[self.i, self.j]
        self.n = responses.trials[self.i, self.j]
        sizes, self.size_of = np.unique(self.n, return_inverse=True)
        self.passes, self.fails, self.sizes = Rising.of(self.k), Rising.of(self.n - self.k), Rising.of(sizes)
        k, n = self.k, self.n
        self.log_binomial = float(np.sum(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)))

    def start(self) -> Floats:
        """Smoothed logits of the margins: a few L-BFGS iterations nearer than zero."""
        models, tasks = self.shape

        def logits(index: NDArray[np.intp], size: int) -> Floats:
            passes = np.bincount(index, self.k, minlength=size) + 0.5
            fails = np.bincount(index, self.n - self.k, minlength=size) + 0.5
            return np.log(passes / fails)

        theta = logits(self.i, models)
        centre = float(theta.mean())
        return np.concatenate([theta - centre, centre - logits(self.j, tasks), [0.0]])

    def likelihood(self, x: Floats) -> tuple[float, Floats]:
        """Log likelihood without binomial coefficients, and its gradient."""
        models, tasks = self.shape
        m, pi, rest = self._rates(x)
        log_up, up = self.passes.log_and_slope(m * pi)
        log_down, down = self.fails.log_and_slope(m * rest)
        log_both, both = self.sizes.log_and_slope(np.full(self.sizes.size, m))
        value = np.sum(log_up) + np.sum(log_down) - np.sum(log_both[self.size_of])
        slope = m * pi * rest * (up - down)  # d/d(theta - b)
        grad = np.empty_like(x)
        grad[:models] = np.bincount(self.i, slope, minlength=models)
        grad[models:-1] = -np.bincount(self.j, slope, minlength=tasks)
        grad[-1] = m * (np.sum(pi * up + rest * down) - np.sum(both[self.size_of]))
        return float(value), grad

    def curvature(self, x: Floats) -> Arrow:
        """Negative Hessian of the log posterior, in the order theta, b, log m."""
        models, tasks = self.shape
        m, pi, rest = self._rates(x)
        a, c, w = m * pi, m * rest, m * pi * rest
        up, up2 = self.passes.slopes(a)
        down, down2 = self.fails.slopes(c)
        both, both2 = self.sizes.slopes(np.full(self.sizes.size, m))
        d_dd = w * w * (up2 + down2) + w * (rest - pi) * (up - down)
        d_dm = w * (up - down) + w * (a * up2 - c * down2)
        d_mm = np.sum(a * up + c * down + a * a * up2 + c * c * down2) - np.sum(
            (m * both + m * m * both2)[self.size_of]
        )
        cross = np.zeros(self.shape)
        cross[self.i, self.j] = d_dd
        return Arrow.of(
            theta_diagonal=np.bincount(self.i, -d_dd, minlength=models) + 1.0 / PRIOR_SD**2,
            b_diagonal=np.bincount(self.j, -d_dd, minlength=tasks) + 1.0 / PRIOR_SD**2,
            cross=cross,
            theta_border=np.bincount(self.i, -d_dm, minlength=models),
            b_border=np.bincount(self.j, d_dm, minlength=tasks),
            corner=1.0 / PRIOR_SD**2 - float(d_mm),
        )

    def _rates(self, x: Floats) -> tuple[float, Floats, Floats]:
        difference = x[self.i] - x[self.shape[0] + self.j]
        return float(np.exp(x[-1])), special.expit(difference), special.expit(-difference)

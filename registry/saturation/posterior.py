"""Beta posteriors of a pass rate, and what a sampler wants to know of them.

The default prior Beta(0.15, 0.23) is the empirical one of public agent benchmarks: most tasks are nearly always or
nearly never passed. With a calibration fit the prior is Beta(m pi, m (1 - pi)), pi being the Rasch prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

LOW, HIGH = 0.1, 0.9
"""Pass rates up to LOW are too hard, from HIGH on saturated."""
LEVEL = 0.9
"""Mass of the equal-tailed interval that is shown."""
DECAY = 0.9
"""What one weight update leaves of the counts before it (arXiv 2507.04632; per update is the project's)."""


@dataclass(frozen=True, slots=True)
class Beta:
    """Parameters of a Beta distribution over a pass rate; both are positive."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """Posterior mean."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def var(self) -> float:
        """Posterior variance."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total * total * (total + 1.0))


DEFAULT_PRIOR = Beta(0.15, 0.23)


@dataclass(frozen=True, slots=True)
class Regions:
    """Probabilities of the three classes: P(p <= 0.1), P(0.1 < p < 0.9), P(p >= 0.9)."""

    low: float
    mid: float
    high: float


def updated(prior: Beta, *, passes: float, trials: float) -> Beta:
    """The posterior after ``passes`` of ``trials``; counts may be decayed, hence not whole.

    Raises:
        ValueError: negative counts, or more passes than trials.
    """
    if not 0 <= passes <= trials + 1e-9:
        raise ValueError(f"{passes} passes of {trials} trials is not a count")
    return Beta(prior.alpha + passes, prior.beta + max(trials - passes, 0.0))


def rasch_prior(pi: float, m: float) -> Beta:
    """The prior of a task whose pass rate a Rasch fit predicts as ``pi`` with precision ``m``."""
    return Beta(m * pi, m * (1.0 - pi))


def interval(beta: Beta, *, level: float = LEVEL) -> tuple[float, float]:
    """Equal-tailed interval that holds ``level`` of the mass."""
    tail = (1.0 - level) / 2.0
    low = special.betaincinv(beta.alpha, beta.beta, tail)
    high = special.betainccinv(beta.alpha, beta.beta, tail)
    return float(low), float(high)


def intervals(alphas: Any, betas: Any, *, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """`interval` of many distributions at once: two arrays as long as the inputs; equal ones are worked out once."""
    (alpha, beta), place = np.unique(np.array([alphas, betas], dtype=np.float64), axis=1, return_inverse=True)
    tail = (1.0 - level) / 2.0
    place = place.reshape(-1)  # numpy 2.0 alone gives it another shape
    return special.betaincinv(alpha, beta, tail)[place], special.betainccinv(alpha, beta, tail)[place]


@lru_cache(maxsize=1 << 14)
def regions(beta: Beta) -> Regions:
    """How much of the posterior lies in each class; each from its own tail, so that small ones stay exact.

    Kept for posteriors met lately: while a batch of outcomes is folded, thousands of tasks meet the same few.
    """
    below = float(special.betainc(beta.alpha, beta.beta, LOW))
    above = float(special.betaincc(beta.alpha, beta.beta, HIGH))
    return Regions(below, max(0.0, 1.0 - below - above), above)


def learnability(beta: Beta) -> float:
    """E[p (1 - p)]: how much a policy-gradient step can expect to learn (arXiv 2504.03380)."""
    total = beta.alpha + beta.beta
    return beta.alpha * beta.beta / (total * (total + 1.0))


def group_value(beta: Beta, group: int) -> float:
    """Probability that ``group`` episodes neither all pass nor all fail, so that their advantages are not all zero."""
    # B(a + G, b) / B(a, b) is the product of (a + i) / (a + b + i); two logs of B would lose digits where a is large.
    total = beta.alpha + beta.beta + np.arange(group)
    all_pass = float(np.sum(np.log1p(-beta.beta / total)))
    all_fail = float(np.sum(np.log1p(-beta.alpha / total)))
    # 1 - P(all pass) - P(all fail); expm1 keeps the digits where one of the two is nearly 1.
    if all_pass > all_fail:
        return float(-np.expm1(all_pass) - np.exp(all_fail))
    return float(-np.expm1(all_fail) - np.exp(all_pass))


@dataclass(frozen=True, slots=True)
class Counts:
    """Decayed passes ``k`` of ``n`` trials, and the weight version they were last brought to."""

    k: float = 0.0
    n: float = 0.0
    version: int | None = None


def faded(updates: int, *, keep: float = DECAY) -> float:
    """What so many weight updates leave of the counts before them."""
    return keep**updates


def decayed(counts: Counts, *, version: int, passes: float, fails: float, keep: float = DECAY) -> Counts:
    """Counts after an event at ``version``: every weight update since the last event decays them, sampled or not.

    Outcomes of older versions arrive late in asynchronous training; they decay nothing, and never un-decay.
    """
    if counts.version is None:
        return Counts(passes, passes + fails, version)
    if version <= counts.version:
        return Counts(counts.k + passes, counts.n + passes + fails, counts.version)
    factor = faded(version - counts.version, keep=keep)
    return Counts(counts.k * factor + passes, counts.n * factor + passes + fails, version)

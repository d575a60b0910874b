"""Screening replayed on recorded outcomes, against a fixed 32 episodes a task.

Every policy of the table is screened once a seed, on the dataset-levels of its half of the datasets. What the registry
knows of the other policies is their first 16 outcomes in the seed's order. Both arms see a cell's outcomes in one
order, begin from the same prior, and are right where the class that their posterior calls likeliest is that of the
cell's whole recorded rate.

Nothing of the rule was chosen on the half that is reported: its horizon is the fixed number, its least price comes from
simulation, and its form and the weight of its priors were tried on the other half.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from registry.calibration.rasch import Floats, Responses
from registry.calibration.refit import priors_from
from registry.saturation.lookahead import BUDGET, HORIZON, Lookahead
from registry.saturation.posterior import DEFAULT_PRIOR, HIGH, LOW, Beta, updated
from registry.saturation.screening import AT_MOST, CERTAIN, STEP

OTHERS = 16
"""Outcomes a task that the registry has of each other policy: about what a screening takes."""
LEAST_TRIALS = 50
Counts = NDArray[np.int_]
Rule = Callable[["Prior", Counts], Counts]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Passes of trials [I, J], 0 trials where there is no cell; ``dataset`` [J] numbers the tasks' datasets."""

    passes: Counts
    trials: Counts
    dataset: Counts

    def orders(self, seed: int, *, fresh: bool = False) -> Counts:
        """Passes among the first n outcomes, [I, J, HORIZON + 1], in a random order of the recorded ones.

        With ``fresh`` they are drawn anew at the recorded rate instead: an arm that sees most of a cell's trials then
        knows no more of the rate for that.
        """
        rng = np.random.default_rng(seed)
        found = np.zeros((*self.trials.shape, HORIZON + 1), dtype=int)
        for i, j in zip(*np.nonzero(self.trials), strict=True):
            outcomes = np.arange(self.trials[i, j]) < self.passes[i, j]
            drawn = rng.choice(outcomes, HORIZON, replace=fresh)
            found[i, j, 1:] = np.cumsum(drawn)
        return found

    def truth(self) -> Counts:
        """The class of each cell's whole recorded rate: 0 too hard, 1 learnable, 2 saturated."""
        rate = self.passes / np.maximum(self.trials, 1)
        return np.where(rate <= LOW, 0, np.where(rate >= HIGH, 2, 1))


@dataclass(frozen=True, slots=True)
class Prior:
    """Priors of J tasks."""

    alpha: Floats
    beta: Floats

    def posterior(self, task: int, passes: int, trials: int) -> Beta:
        """Of one task after ``passes`` of ``trials``."""
        return updated(Beta(self.alpha[task], self.beta[task]), passes=passes, trials=trials)

    def likeliest(self, passes: Counts, trials: Counts) -> tuple[Counts, Floats]:
        """The likeliest classes, and how likely they are."""
        a, b = self.alpha + passes, self.beta + trials - passes
        low, high = special.betainc(a, b, LOW), special.betaincc(a, b, HIGH)
        classes = np.stack([low, 1.0 - low - high, high])
        return classes.argmax(axis=0), classes.max(axis=0)


@dataclass(frozen=True, slots=True)
class Arm:
    """One rule on all campaigns: what was spent on each cell, and whether it came out right; [cells]."""

    n: Counts
    right: NDArray[np.bool_]
    certain: NDArray[np.bool_]


def read(path: Path) -> Recorded:
    """A table ``model, task, trials, passes``; cells with fewer than `LEAST_TRIALS` trials are left out."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if int(row["trials"]) >= LEAST_TRIALS]
    models, tasks = (sorted({row[key] for row in rows}) for key in ("model", "task"))
    passes = np.zeros((len(models), len(tasks)), dtype=int)
    trials = np.zeros_like(passes)
    for row in rows:
        place = models.index(row["model"]), tasks.index(row["task"])
        passes[place], trials[place] = int(row["passes"]), int(row["trials"])
    names = [task.split("@")[0] for task in tasks]
    dataset = np.array([sorted(set(names)).index(name) for name in names])
    held_out = np.array([hashlib.sha256(name.encode()).digest()[0] % 2 == 1 for name in names])
    return Recorded(passes[:, held_out], trials[:, held_out], dataset[held_out])


def fixed(n: int) -> Rule:
    """As many episodes on every task."""
    return lambda _prior, orders: np.full(len(orders), n)


def by_fours(prior: Prior, orders: Counts) -> Counts:
    """By fours until one class is certain, at most 32: each task by itself."""
    n = np.full(len(orders), STEP)
    while True:
        sure = prior.likeliest(orders[np.arange(len(n)), n], n)[1]
        further = (sure < CERTAIN) & (n < AT_MOST)
        if not further.any():
            return n
        n = n + STEP * further


def by_lookahead(prior: Prior, orders: Counts) -> Counts:
    """As `registry.calibration.measure` does it, a round at a time."""
    n = np.full(len(orders), STEP)
    going = np.arange(len(n))
    while going.size:
        posteriors = [prior.posterior(int(j), int(orders[j, n[j]]), int(n[j])) for j in going]
        plan = Lookahead(posteriors, n[going].tolist()).within(BUDGET * len(n) - n.sum())
        going = going[plan.look]
        n[going] += STEP
    return n


def campaigns(table: Recorded, seeds: range, *, others: bool, fresh: bool = False) -> list[tuple[Prior, Counts]]:
    """Of each seed and policy the priors after the first look, and the orders, of the cells that there are."""
    found = []
    for seed in seeds:
        orders = table.orders(seed, fresh=fresh)
        for i in range(len(orders)):
            there = np.flatnonzero(table.trials[i])
            alpha, beta = np.full(len(there), DEFAULT_PRIOR.alpha), np.full(len(there), DEFAULT_PRIOR.beta)
            if others:
                rest = np.delete(np.arange(len(orders)), i)
                tried = np.where(table.trials[rest][:, there] > 0, float(OTHERS), 0.0)
                known = Responses(orders[rest][:, there, OTHERS].astype(float), tried)
                first = orders[i, there, STEP].astype(float)
                priors = priors_from(known, first, np.full(len(there), float(STEP)))
                alpha, beta = np.array([p.alpha for p in priors]), np.array([p.beta for p in priors])
            found.append((Prior(alpha, beta), orders[i, there]))
    return found


def play(rule: Rule, table: Recorded, runs: list[tuple[Prior, Counts]]) -> Arm:
    """A rule on all campaigns of `campaigns`."""
    spent, right, certain = [], [], []
    policies, truth = len(table.trials), table.truth()
    for place, (prior, orders) in enumerate(runs):
        i = place % policies
        n = rule(prior, orders)
        called, sure = prior.likeliest(orders[np.arange(len(n)), n], n)
        spent.append(n)
        right.append(called == truth[i, np.flatnonzero(table.trials[i])])
        certain.append(sure >= CERTAIN)
    return Arm(np.concatenate(spent), np.concatenate(right), np.concatenate(certain))


def interval(table: Recorded, seeds: int, ours: Arm, theirs: Arm, *, resamples: int = 4000) -> tuple[float, float]:
    """95 % interval of the difference in accuracy: a paired bootstrap over datasets and over seeds.

    A dataset's cells, of two levels and all policies, are drawn together: what makes one of them hard to call is seldom
    its own.
    """
    there = [np.flatnonzero(row) for row in table.trials]
    dataset = np.tile(np.concatenate([table.dataset[one] for one in there]), seeds)
    seed = np.repeat(np.arange(seeds), sum(len(one) for one in there))
    names, place = np.unique(dataset, return_inverse=True)
    apart, cells = np.zeros((len(names), seeds)), np.zeros((len(names), seeds))
    np.add.at(apart, (place, seed), ours.right.astype(float) - theirs.right)
    np.add.at(cells, (place, seed), 1.0)
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(resamples):
        of_dataset = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
        of_seed = np.bincount(rng.integers(seeds, size=seeds), minlength=seeds)
        differences.append((of_dataset @ apart @ of_seed) / (of_dataset @ cells @ of_seed))
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)

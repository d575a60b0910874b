"""Which tasks are worth another look: backward induction, at a price an episode that all tasks of a campaign share.

A task's further looks are a Bayesian decision problem with a finite horizon (DeGroot, Optimal Statistical Decisions,
1970, ch. 12). To stop loses the posterior probability that the likeliest class is wrong; to go on costs four episodes
at ``price``, and then what the next posterior loses. No task goes past `HORIZON`. The tasks of a campaign share nothing
but its episodes, so that the best way to spend them is one price for all, at which the episodes expected are as many
as there are (a Lagrangian relaxation; Hawkins, 2003).

What a plan is expected to spend includes its looks of now: looking as it says, and planning anew with what is left of
the budget, never spends more than the budget. Nothing here knows what an episode is; `calibration.measure` runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from registry.saturation.posterior import HIGH, LOW, Beta
from registry.saturation.screening import AT_MOST, STEP

BUDGET = AT_MOST // 2
"""Graded episodes a task that a campaign spends on average, at most: half of a fixed number."""
HORIZON = AT_MOST
"""Graded episodes that one task may take, out of what the others save: no more than a fixed number gives it."""
LEAST_PRICE = 0.0003
"""However many episodes are left: one that adds less than this to a task's chance of being called right is not run.

On tasks drawn from the default prior it costs 0.0005 of the accuracy of a fixed 32.
"""
_MOST_PRICE = 1.0
_HALVINGS = 14

Floats = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is best at one price. ``look`` [J]: whether to take another; ``episodes`` [J]: how many are expected."""

    price: float
    look: NDArray[np.bool_]
    episodes: Floats


class Lookahead:
    """The looks ahead of J tasks, worked out once for any number of prices.

    Args:
        posteriors: of each task, as it is.
        spent: graded episodes of each task so far; what is left to `HORIZON` are its looks.
    """

    def __init__(self, posteriors: Sequence[Beta], spent: Sequence[float]) -> None:
        looks = np.ceil((HORIZON - np.asarray(spent, dtype=np.float64)) / STEP).clip(0, HORIZON // STEP)
        states = np.array([(one.alpha, one.beta) for one in posteriors]).reshape(-1, 2)
        # Thousands of tasks without a prior of their own are in a few states.
        distinct, place = np.unique(np.column_stack([looks, states]), axis=0, return_inverse=True)
        self._state = place.reshape(-1)  # numpy 2.0 alone gives it another shape
        self._states = len(distinct)
        self._trees = [
            (places, _Tree(distinct[places, 1], distinct[places, 2], int(left)))
            for left in np.unique(distinct[:, 0])
            for places in [np.flatnonzero(distinct[:, 0] == left)]
        ]

    def at(self, price: float) -> Plan:
        """The best plan where an episode costs ``price``, in probability of a task's being called right."""
        look, episodes = np.zeros(self._states, dtype=bool), np.zeros(self._states)
        for places, tree in self._trees:
            look[places], episodes[places] = tree.best(price)
        return Plan(price, look[self._state], episodes[self._state])

    def within(self, budget: float) -> Plan:
        """The plan at the lowest price, from `LEAST_PRICE` on, that expects at most ``budget`` episodes in all."""
        plan = self.at(LEAST_PRICE)
        if plan.episodes.sum() <= budget:
            return plan
        low, high = np.log(LEAST_PRICE), np.log(_MOST_PRICE)
        found = self.at(_MOST_PRICE)  # no episode is worth a whole task: it looks nowhere
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            plan = self.at(float(np.exp(middle)))
            if plan.episodes.sum() <= budget:
                high, found = middle, plan
            else:
                low = middle
        return found


class _Tree:
    """What may come of each task's next ``looks`` looks; arrays have shape [J, passes among the outcomes so far]."""

    def __init__(self, alpha: Floats, beta: Floats, looks: int) -> None:
        self._losses: list[Floats] = []
        self._chances: list[Floats] = []  # [J, passes so far, passes of the next look]
        drawn = np.arange(STEP + 1)
        ways = special.binom(STEP, drawn)
        for look in range(looks + 1):
            passes = np.arange(look * STEP + 1)
            a, b = alpha[:, None] + passes, beta[:, None] + (look * STEP - passes)
            self._losses.append(_loss(a, b))
            if look < looks:
                a, b = a[..., None], b[..., None]
                ahead = special.betaln(a + drawn, b + STEP - drawn) - special.betaln(a, b)
                self._chances.append(ways * np.exp(ahead))

    def best(self, price: float) -> tuple[NDArray[np.bool_], Floats]:
        """Whether to look now, and how many episodes that leads one to expect, of each task."""
        value = self._losses[-1]
        look, episodes = np.zeros(value.shape, dtype=bool), np.zeros(value.shape)
        for losses, chances in zip(self._losses[-2::-1], self._chances[::-1], strict=True):
            further = price * STEP + _mean(chances, value)
            look = further < losses
            value = np.where(look, further, losses)
            episodes = np.where(look, STEP + _mean(chances, episodes), 0.0)
        return look[:, 0], episodes[:, 0]


def _loss(a: Floats, b: Floats) -> Floats:
    """The probability that the likeliest class is wrong."""
    low, high = special.betainc(a, b, LOW), special.betaincc(a, b, HIGH)
    return np.asarray(1.0 - np.maximum(np.maximum(low, high), 1.0 - low - high))


def _mean(chances: Floats, following: Floats) -> Floats:
    """What the states after the next look are worth on average: from [J, k + STEP] to [J, k]."""
    windows = np.lib.stride_tricks.sliding_window_view(following, STEP + 1, axis=1)
    return np.asarray((chances * windows).sum(axis=-1))

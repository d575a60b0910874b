"""Sharing episodes among tasks: never over the budget, never past the horizon, and where they tell most."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from registry.saturation.lookahead import BUDGET, HORIZON, LEAST_PRICE, Lookahead
from registry.saturation.posterior import DEFAULT_PRIOR, Beta, regions, updated
from registry.saturation.screening import STEP

PARAMETER = st.floats(0.01, 30.0)
TASKS = st.lists(st.tuples(st.builds(Beta, PARAMETER, PARAMETER), st.integers(0, 2 * HORIZON)), min_size=1, max_size=6)


def ahead(tasks):
    return Lookahead([posterior for posterior, _ in tasks], [spent for _, spent in tasks])


@given(TASKS, st.floats(-10, 200))
@settings(deadline=None, max_examples=50)
def test_a_plan_expects_no_more_than_its_budget(tasks, budget):
    assert ahead(tasks).within(budget).episodes.sum() <= max(budget, 0.0) + 1e-9


@given(TASKS, st.floats(LEAST_PRICE, 0.5), st.floats(1.0, 10.0))
@settings(deadline=None, max_examples=50)
def test_a_dearer_episode_is_never_wanted_where_a_cheaper_one_was_not(tasks, price, factor):
    cheap, dear = ahead(tasks).at(price), ahead(tasks).at(price * factor)
    assert not np.any(dear.look & ~cheap.look)
    assert np.all(dear.episodes <= cheap.episodes + 1e-9)


@given(TASKS, st.floats(LEAST_PRICE, 0.5))
@settings(deadline=None, max_examples=50)
def test_a_look_is_planned_whole_and_not_past_the_horizon(tasks, price):
    plan = ahead(tasks).at(price)
    left = np.array([max(0, -(-(HORIZON - spent) // STEP)) * STEP for _, spent in tasks])
    assert np.all(plan.episodes <= left + 1e-9)
    assert np.all(plan.episodes[plan.look] >= STEP)
    assert np.all(plan.episodes[~plan.look] == 0)


@given(TASKS, st.floats(LEAST_PRICE, 0.5), st.randoms())
@settings(deadline=None, max_examples=50)
def test_tasks_are_judged_alike_in_any_company_and_order(tasks, price, random):
    shuffled = random.sample(tasks, len(tasks))
    together = dict(zip(shuffled, ahead(shuffled).at(price).look.tolist(), strict=True))
    assert [together[task] for task in tasks] == [bool(ahead([task]).at(price).look[0]) for task in tasks]


@given(PARAMETER, PARAMETER, st.sampled_from([0.0005, 0.005, 0.02]))
@settings(deadline=None)
def test_with_one_look_left_it_is_taken_where_the_chance_of_being_right_grows_by_its_price(alpha, beta, price):
    def right(posterior):
        found = regions(posterior)
        return max(found.low, found.mid, found.high)

    chances = stats.betabinom(STEP, alpha, beta).pmf(range(STEP + 1))
    after = sum(chance * right(Beta(alpha + k, beta + STEP - k)) for k, chance in enumerate(chances))
    gain = after - right(Beta(alpha, beta))
    assume(abs(gain - STEP * price) > 1e-9)
    look = Lookahead([Beta(alpha, beta)], [HORIZON - STEP]).at(price).look[0]
    assert bool(look) == (gain > STEP * price)


def test_no_tasks_need_no_looks():
    plan = Lookahead([], []).within(0.0)
    assert plan.look.size == plan.episodes.size == 0


def shared(rates, outcomes):
    """Graded episodes of each task where the tasks are screened together."""
    n, k = np.full(len(rates), STEP), outcomes[:, :STEP].sum(axis=1)
    while True:
        posteriors = [updated(DEFAULT_PRIOR, passes=int(one), trials=int(of)) for one, of in zip(k, n, strict=True)]
        plan = Lookahead(posteriors, n).within(BUDGET * len(n) - n.sum())
        if not plan.look.any():
            return n
        n = n + STEP * plan.look
        k = np.array([row[:of].sum() for row, of in zip(outcomes, n, strict=True)])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=15)
def test_planning_anew_each_round_never_spends_more_than_the_budget(rates, seed):
    outcomes = np.random.default_rng(seed).random((len(rates), HORIZON)) < np.array(rates)[:, None]
    n = shared(rates, outcomes)
    assert n.sum() <= BUDGET * len(rates)
    assert n.max() <= HORIZON
    assert n.min() >= STEP

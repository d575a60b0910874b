"""The replay of screening: both arms see the same outcomes and are judged alike, and the interval is that of the data."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import screening_replay as replay
from registry.saturation.lookahead import BUDGET, HORIZON
from registry.saturation.posterior import DEFAULT_PRIOR
from registry.saturation.screening import AT_MOST, STEP, screen


@pytest.fixture
def table():
    """Five policies on twelve tasks of six datasets; one cell was never tried."""
    rng = np.random.default_rng(5)
    trials = np.full((5, 12), 50)
    trials[0, 3] = 0
    rates = rng.beta(0.3, 0.4, size=trials.shape)
    return replay.Recorded(rng.binomial(trials, rates), trials, np.repeat(np.arange(6), 2))


def test_an_order_is_of_the_recorded_outcomes(table):
    orders = table.orders(0)
    assert np.all(np.diff(orders, axis=2) <= 1)
    assert np.all(np.diff(orders, axis=2) >= 0)
    assert np.all(orders[:, :, HORIZON] <= table.passes)
    assert np.array_equal(orders, table.orders(0))


def test_fresh_draws_are_not_bound_to_the_recorded_ones(table):
    always = replay.Recorded(table.trials, table.trials, table.dataset)
    there = table.trials > 0
    assert np.all(always.orders(0, fresh=True)[there][:, HORIZON] == HORIZON)


@pytest.mark.parametrize("others", [True, False])
def test_half_the_episodes_is_the_most_that_is_spent(table, others):
    runs = replay.campaigns(table, range(2), others=others)
    for prior, orders in runs:
        n = replay.by_lookahead(prior, orders)
        assert n.sum() <= BUDGET * len(n)
        assert STEP <= n.min() <= n.max() <= HORIZON


def test_a_cell_that_was_never_tried_has_no_part(table):
    runs = replay.campaigns(table, range(1), others=False)
    assert [len(orders) for _, orders in runs] == [11, 12, 12, 12, 12]
    assert replay.play(replay.fixed(AT_MOST), table, runs).n.size == 59


def test_by_fours_is_what_screening_a_task_by_itself_does(table):
    [(prior, orders), *_] = replay.campaigns(table, range(1), others=False)
    alone = [screen(DEFAULT_PRIOR, [bool(one) for one in np.diff(cell)]).n for cell in orders]
    assert replay.by_fours(prior, orders).tolist() == alone


def test_an_arm_is_no_better_than_itself(table):
    runs = replay.campaigns(table, range(2), others=False)
    arm = replay.play(replay.fixed(16), table, runs)
    assert replay.interval(table, 2, arm, arm, resamples=50) == (0.0, 0.0)


def test_the_interval_holds_the_difference_and_turns_round_with_the_arms(table):
    runs = replay.campaigns(table, range(3), others=False)
    few, many = (replay.play(replay.fixed(n), table, runs) for n in (4, 32))
    low, high = replay.interval(table, 3, few, many, resamples=400)
    assert low <= few.right.mean() - many.right.mean() <= high
    assert replay.interval(table, 3, many, few, resamples=400) == pytest.approx((-high, -low))


def test_a_table_is_read_without_cells_of_few_trials_and_without_the_half_that_was_tried_on(tmp_path):
    path = tmp_path / "responses.csv"
    rows = [f"m,{name}@{level},{trials},10" for name in "abcdefgh" for level, trials in (("easy", 50), ("hard", 49))]
    path.write_text("\n".join(["model,task,trials,passes", *rows]))
    table = replay.read(path)
    assert 0 < table.trials.size < 8
    assert np.all(table.trials == 50)

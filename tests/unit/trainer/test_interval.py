"""Clustered intervals for pass rates: coverage, width, and the edges."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.interval import clustered_rate

ATTEMPTS = st.lists(st.lists(st.booleans(), min_size=0, max_size=6), min_size=0, max_size=40)


def test_nothing_scored_has_no_rate_and_no_interval() -> None:
    assert clustered_rate([[], []]) == clustered_rate([])
    assert clustered_rate([]).rate is None


@settings(deadline=None)
@given(ATTEMPTS)
def test_the_rate_lies_in_its_interval_and_the_interval_in_the_unit_range(tasks) -> None:
    found = clustered_rate(tasks)
    if found.rate is not None:
        assert 0.0 <= found.low <= found.rate <= found.high <= 1.0
        assert found.n == sum(map(len, tasks))


def test_identical_attempts_within_tasks_widen_the_interval_to_that_of_the_tasks() -> None:
    alike = clustered_rate([[number % 2 == 0] * 4 for number in range(40)])
    single = clustered_rate([[number % 2 == 0] for number in range(40)])
    assert alike.high - alike.low == pytest.approx(single.high - single.low, rel=0.03)


def test_independent_attempts_narrow_it() -> None:
    chance = random.Random(1)
    mixed = clustered_rate([[chance.random() < 0.5 for _ in range(4)] for _ in range(60)])
    alike = clustered_rate([[number % 2 == 0] * 4 for number in range(60)])
    assert mixed.high - mixed.low < 0.7 * (alike.high - alike.low)


@pytest.mark.parametrize("passed", [True, False])
def test_a_rate_at_the_edge_still_has_a_width(passed: bool) -> None:
    found = clustered_rate([[passed] * 4] * 20)
    assert found.high - found.low > 0.05


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = random.Random(3)
    hits = 0
    for _ in range(300):
        rates = [chance.betavariate(2, 3) for _ in range(64)]
        found = clustered_rate([[chance.random() < rate for _ in range(4)] for rate in rates])
        hits += found.low <= 0.4 <= found.high
    assert 0.92 <= hits / 300 <= 0.98

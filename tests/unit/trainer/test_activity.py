"""Busy, idle and overlapping time, added up from events on a clock of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.activity import Activity


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_an_engine_without_a_request_while_an_episode_acts_is_idle_for_its_environment(clock: Clock) -> None:
    activity = Activity(now=clock)
    activity.started("a")
    activity.generating("a")
    clock.now += 3
    activity.acting("a")
    clock.now += 2
    activity.ended("a")
    clock.now += 5
    totals = activity.totals
    assert (totals.engine_busy_s, totals.engine_idle_env_s, totals.wall_s) == (3, 2, 10)


def test_one_request_of_many_episodes_keeps_the_engine_busy(clock: Clock) -> None:
    activity = Activity(now=clock)
    for name in "ab":
        activity.started(name)
        activity.generating(name)
    activity.acting("a")
    clock.now += 4
    assert activity.totals.engine_idle_env_s == 0
    assert activity.totals.engine_busy_s == 4


def test_overlap_is_when_both_are_busy(clock: Clock) -> None:
    activity = Activity(now=clock)
    activity.started("a")
    activity.learning(True)
    clock.now += 1
    activity.generating("a")
    clock.now += 2
    activity.learning(False)
    clock.now += 4
    totals = activity.totals
    assert (totals.learner_busy_s, totals.overlap_s, totals.engine_busy_s) == (3, 2, 6)
    assert totals.overlap_share == pytest.approx(2 / 3)


def test_a_lost_episode_stops_counting_as_generating(clock: Clock) -> None:
    activity = Activity(now=clock)
    activity.started("a")
    activity.generating("a")
    activity.ended("a")
    clock.now += 5
    assert activity.totals.engine_busy_s == 0


def test_a_difference_of_totals_is_what_was_added(clock: Clock) -> None:
    activity = Activity(now=clock)
    clock.now += 1
    before = activity.totals
    activity.learning(True)
    clock.now += 2
    added = activity.totals.since(before)
    assert (added.learner_busy_s, added.wall_s) == (2, 2)


@given(st.lists(st.tuples(st.sampled_from("sgaelx"), st.sampled_from("ab"), st.floats(0, 5)), max_size=30))
def test_no_total_exceeds_the_wall_and_busy_and_idle_never_overlap(events) -> None:
    clock = Clock()
    activity = Activity(now=clock)
    calls = {"s": activity.started, "g": activity.generating, "a": activity.acting, "e": activity.ended}
    for kind, name, passed in events:
        if kind in calls:
            calls[kind](name)
        else:
            activity.learning(kind == "l")
        clock.now += passed
    totals = activity.totals
    assert totals.engine_busy_s + totals.engine_idle_env_s <= totals.wall_s + 1e-6
    assert totals.overlap_s <= min(totals.engine_busy_s, totals.learner_busy_s) + 1e-6


def test_tokens_of_served_turns_add_up(clock: Clock) -> None:
    activity = Activity(now=clock)
    activity.served(prompt_tokens=10, cached_tokens=4, generated_tokens=3)
    before = activity.totals
    activity.served(prompt_tokens=20, cached_tokens=16, generated_tokens=5)
    added = activity.totals.since(before)
    assert (added.prompt_tokens, added.prefix_hit_tokens, added.generated_tokens) == (20, 16, 5)
    assert activity.totals.prompt_tokens == 30

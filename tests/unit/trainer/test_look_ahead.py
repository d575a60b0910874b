"""Draws made ahead: the same tasks in the same order, announced before they are drawn, and restored exactly."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.episodes import make_task
from trainer.look_ahead import LookAhead
from trainer.sampler import Sampler

TASKS = [make_task(number) for number in range(8)]


def slugs(draws: LookAhead | Sampler, n: int) -> list[str]:
    return [draws.draw().slug for _ in range(n)]


@given(seed=st.integers(0, 1000), depth=st.integers(1, 6))
@settings(max_examples=20)
def test_without_new_evidence_the_draws_are_the_samplers(seed: int, depth: int) -> None:
    assert slugs(LookAhead(Sampler(TASKS, seed=seed), depth=depth), 20) == slugs(Sampler(TASKS, seed=seed), 20)


@given(depth=st.integers(1, 6), before=st.integers(0, 9))
@settings(max_examples=20)
def test_what_is_announced_is_what_is_drawn(depth: int, before: int) -> None:
    draws = LookAhead(Sampler(TASKS), depth=depth)
    slugs(draws, before)
    announced = [task.slug for task in draws.upcoming]
    assert len(announced) == depth
    assert slugs(draws, depth) == announced


def test_looking_changes_nothing() -> None:
    one, other = LookAhead(Sampler(TASKS), depth=3), LookAhead(Sampler(TASKS), depth=3)
    one.draw()
    other.draw()
    digest = TASKS[0].digests.task
    assert one.upcoming
    for draws in (one, other):
        draws.observe(digest, passed=8, graded=8, version=0)
    assert slugs(one, 12) == slugs(other, 12)


@given(before=st.integers(0, 20), depth=st.integers(1, 5))
@settings(max_examples=20)
def test_a_restored_one_draws_what_the_saved_one_would(before: int, depth: int) -> None:
    draws = LookAhead(Sampler(TASKS), depth=depth)
    slugs(draws, before)
    state = json.loads(json.dumps(draws.state()))
    other = LookAhead(Sampler(TASKS, seed=5), depth=depth)
    other.restore(state)
    assert slugs(other, 12) == slugs(draws, 12)


def test_a_state_of_before_there_was_a_look_ahead_restores_too() -> None:
    sampler = Sampler(TASKS, seed=3)
    state = sampler.state()
    draws = LookAhead(Sampler(TASKS), depth=3)
    draws.restore(state)
    assert slugs(draws, 10) == slugs(sampler, 10)


def test_each_draw_says_that_others_come_next() -> None:
    told: list[int] = []
    draws = LookAhead(Sampler(TASKS), depth=2, moved=lambda: told.append(len(told)))
    slugs(draws, 3)
    assert len(told) == 4  # once at the start

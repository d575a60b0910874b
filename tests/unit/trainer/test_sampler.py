"""The sampler prefers what can be learned, forgets nothing it promised, and resumes exactly."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.errors import FaultyError
from tests.fakes.episodes import make_task
from trainer.sampler import Sampler

TASKS = [make_task(number) for number in range(8)]
DIGESTS = [task.digests.task for task in TASKS]


def drawn(sampler: Sampler, n: int) -> list[str]:
    return [sampler.draw().digests.task for _ in range(n)]


def test_learnable_tasks_are_drawn_more_often_than_known_and_hopeless_ones() -> None:
    posteriors = dict.fromkeys(DIGESTS[:4], (40.0, 40.0)) | dict.fromkeys(DIGESTS[4:6], (79.0, 1.0))
    posteriors |= dict.fromkeys(DIGESTS[6:], (1.0, 79.0))
    counts = Counter(drawn(Sampler(TASKS, posteriors=posteriors, seed=1), 400))
    assert min(counts[d] for d in DIGESTS[:4]) > 3 * max(counts[d] for d in DIGESTS[4:])


@given(seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_every_task_is_drawn_again_and_again_whatever_its_posterior(seed: int) -> None:
    posteriors = dict.fromkeys(DIGESTS[:7], (50.0, 50.0)) | {DIGESTS[7]: (1.0, 9999.0)}
    draws = drawn(Sampler(TASKS, posteriors=posteriors, seed=seed), 400)
    assert DIGESTS[7] in draws[:200]
    assert DIGESTS[7] in draws[200:]


@given(seed=st.integers(0, 1000), before=st.integers(0, 30), passes=st.lists(st.integers(0, 8), max_size=8))
@settings(max_examples=30)
def test_a_restored_sampler_draws_what_the_saved_one_would(seed: int, before: int, passes: list[int]) -> None:
    sampler = Sampler(TASKS, seed=seed)
    drawn(sampler, before)
    for digest, passed in zip(DIGESTS, passes, strict=False):
        sampler.observe(digest, passed=passed, graded=8)
    state = json.loads(json.dumps(sampler.state()))
    expected = drawn(sampler, 20)
    other = Sampler(TASKS, seed=seed + 1)
    other.restore(state)
    assert drawn(other, 20) == expected


def test_a_group_without_variance_moves_the_posterior() -> None:
    sampler = Sampler(TASKS)
    before = sampler.learnability(DIGESTS[0])
    for _ in range(4):
        sampler.observe(DIGESTS[0], passed=8, graded=8)
    assert sampler.learnability(DIGESTS[0]) < before / 3


def test_what_was_not_graded_is_no_evidence() -> None:
    sampler = Sampler(TASKS)
    before = sampler.state()["evidence"]
    sampler.observe(DIGESTS[0], passed=0, graded=0)
    assert sampler.state()["evidence"] == before


def test_learnability_is_the_expectation_of_p_times_one_minus_p() -> None:
    sampler = Sampler(TASKS, posteriors={DIGESTS[0]: (2.0, 3.0)})
    assert sampler.learnability(DIGESTS[0]) == pytest.approx(2 * 3 / (5 * 6))


def test_old_evidence_fades() -> None:
    sampler = Sampler(TASKS)
    for _ in range(3):
        sampler.observe(DIGESTS[0], passed=8, graded=8)
    for _ in range(30):
        sampler.observe(DIGESTS[0], passed=0, graded=8)
    passes, failures = sampler.state()["evidence"][DIGESTS[0]]
    assert passes < 1
    assert 60 < failures <= 80


def test_the_last_drawn_quarter_rests() -> None:
    draws = drawn(Sampler(TASKS, retest_share=0.0), 100)
    for i in range(2, 100):
        assert draws[i] not in draws[i - 2 : i]


def test_one_task_alone_is_drawn_every_time() -> None:
    assert set(drawn(Sampler(TASKS[:1]), 5)) == {DIGESTS[0]}


def test_no_tasks_is_an_error_with_a_code() -> None:
    with pytest.raises(FaultyError) as caught:
        Sampler([])
    assert caught.value.code == "no_tasks"

"""The sampler prefers what can be learned, forgets nothing it promised, and resumes exactly."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.errors import FaultyError
from registry.saturation.posterior import Counts, decayed
from tests.fakes.episodes import make_task
from trainer.sampler import Belief, Sampler

TASKS = [make_task(number) for number in range(8)]
DIGESTS = [task.digests.task for task in TASKS]


def drawn(sampler: Sampler, n: int) -> list[str]:
    return [sampler.draw().digests.task for _ in range(n)]


def test_learnable_tasks_are_drawn_more_often_than_known_and_hopeless_ones() -> None:
    beliefs = dict.fromkeys(DIGESTS[:4], Belief(40.0, 40.0)) | dict.fromkeys(DIGESTS[4:6], Belief(79.0, 1.0))
    beliefs |= dict.fromkeys(DIGESTS[6:], Belief(1.0, 79.0))
    counts = Counter(drawn(Sampler(TASKS, beliefs=beliefs, seed=1), 400))
    assert min(counts[d] for d in DIGESTS[:4]) > 3 * max(counts[d] for d in DIGESTS[4:])


@given(seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_every_task_is_drawn_again_and_again_whatever_its_posterior(seed: int) -> None:
    beliefs = dict.fromkeys(DIGESTS[:7], Belief(50.0, 50.0)) | {DIGESTS[7]: Belief(1.0, 9999.0)}
    draws = drawn(Sampler(TASKS, beliefs=beliefs, seed=seed), 400)
    assert DIGESTS[7] in draws[:200]
    assert DIGESTS[7] in draws[200:]


@given(seed=st.integers(0, 1000), before=st.integers(0, 30), passes=st.lists(st.integers(0, 8), max_size=8))
@settings(max_examples=30)
def test_a_restored_sampler_draws_what_the_saved_one_would(seed: int, before: int, passes: list[int]) -> None:
    sampler = Sampler(TASKS, seed=seed)
    drawn(sampler, before)
    for version, (digest, passed) in enumerate(zip(DIGESTS, passes, strict=False)):
        sampler.observe(digest, passed=passed, graded=8, version=version)
    state = json.loads(json.dumps(sampler.state()))
    expected = drawn(sampler, 20)
    # By then a registry has heard of the run itself: that must not be counted a second time.
    other = Sampler(TASKS, seed=seed + 1, beliefs=dict.fromkeys(DIGESTS, Belief(1.0, 1.0, 30.0, 5.0, 7)))
    other.restore(state)
    assert drawn(other, 20) == expected


def test_a_group_without_variance_moves_the_posterior() -> None:
    sampler = Sampler(TASKS)
    before = sampler.learnability(DIGESTS[0])
    for _ in range(4):
        sampler.observe(DIGESTS[0], passed=8, graded=8, version=0)
    assert sampler.learnability(DIGESTS[0]) < before / 3


def test_what_was_not_graded_is_no_evidence() -> None:
    sampler = Sampler(TASKS)
    before = sampler.state()["beliefs"]
    sampler.observe(DIGESTS[0], passed=0, graded=0, version=3)
    assert sampler.state()["beliefs"] == before


def test_learnability_is_the_expectation_of_p_times_one_minus_p() -> None:
    sampler = Sampler(TASKS, beliefs={DIGESTS[0]: Belief(2.0, 2.0, 0.0, 1.0)})
    assert sampler.learnability(DIGESTS[0]) == pytest.approx(2 * 3 / (5 * 6))


def counted(sampler: Sampler) -> tuple[float, float]:
    kept = sampler.state()["beliefs"][DIGESTS[0]]
    return kept["passes"], kept["failures"]


def test_old_evidence_fades_with_the_weights_that_made_it() -> None:
    sampler = Sampler(TASKS)
    for version in range(3):
        sampler.observe(DIGESTS[0], passed=8, graded=8, version=version)
    for version in range(3, 33):
        sampler.observe(DIGESTS[0], passed=0, graded=8, version=version)
    passes, failures = counted(sampler)
    assert passes < 1
    assert 60 < failures <= 80


def test_evidence_of_one_version_does_not_fade_however_often_it_comes() -> None:
    sampler = Sampler(TASKS)
    for _ in range(20):
        sampler.observe(DIGESTS[0], passed=3, graded=8, version=4)
    assert counted(sampler) == (60.0, 100.0)


def test_a_version_without_an_episode_of_the_task_fades_its_evidence_all_the_same() -> None:
    sampler = Sampler(TASKS, beliefs={DIGESTS[0]: Belief(0.15, 0.23, 10.0, 0.0, 2)})
    sampler.observe(DIGESTS[0], passed=0, graded=1, version=12)
    assert counted(sampler) == pytest.approx((10.0 * 0.9**10, 1.0))


def test_the_prior_never_fades() -> None:
    sampler = Sampler(TASKS, beliefs={DIGESTS[0]: Belief(2.0, 3.0, 5.0, 5.0, 0)})
    sampler.observe(DIGESTS[0], passed=0, graded=1, version=1_000)
    kept = sampler.state()["beliefs"][DIGESTS[0]]
    assert (kept["alpha"], kept["beta"]) == (2.0, 3.0)
    assert counted(sampler) == pytest.approx((0.0, 1.0))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8), st.integers(0, 8)), max_size=20), st.integers(0, 10))
def test_evidence_fades_by_the_registrys_rule(outcomes: list[tuple[int, int, int]], first: int) -> None:
    sampler = Sampler(TASKS, beliefs={DIGESTS[0]: Belief(0.15, 0.23, 4.0, 2.0, first)})
    counts = Counts(4.0, 6.0, first)
    for version, passes, fails in outcomes:
        sampler.observe(DIGESTS[0], passed=passes, graded=passes + fails, version=version)
        if passes + fails:
            counts = decayed(counts, version=version, passes=passes, fails=fails)
    assert counted(sampler) == pytest.approx((counts.k, counts.n - counts.k))


def test_a_state_from_before_priors_stood_apart_is_read() -> None:
    old = Sampler(TASKS).state()
    del old["beliefs"]
    sampler = Sampler(TASKS, beliefs={DIGESTS[0]: Belief(2.0, 3.0, 9.0, 9.0, 5)})
    sampler.restore(old | {"evidence": {DIGESTS[0]: [6.0, 1.5], "gone": [1.0, 1.0]}})
    assert counted(sampler) == (6.0, 1.5)


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

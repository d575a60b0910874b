"""A batch holds what may be trained, counts what may not, and says what it did to the mix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import UsageError
from tests.fakes.episode_records import make_record
from trainer.batch import build_batch, is_valid
from trainer.batch_config import BatchConfig


def group(*rewards: float | None, name: str = "g", version: int = 0) -> list:
    """One group; a reward of `None` is an infrastructure failure."""
    return [
        make_record(
            reward=reward,
            own=[10 + i, 20],
            group=name,
            index=i,
            version=version,
            in_gradient=reward is not None,
            in_baseline=reward is not None,
            cause="finished" if reward is not None else "host_lost",
        )
        for i, reward in enumerate(rewards)
    ]


def advantages(batch) -> dict[str, float]:
    return {sample.episode_id: sample.advantage for samples in batch.groups for sample in samples}


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=6), st.integers(0, 5))
def test_failures_of_the_machinery_change_nothing_but_the_count_of_episodes(
    rewards: list[float], failures: int
) -> None:
    plain = build_batch([group(*rewards)], trainer_version=0)
    other = build_batch([group(*rewards, *[None] * failures)], trainer_version=0)
    assert advantages(other) == advantages(plain)
    assert (other.n_tok, other.n_seq) == (plain.n_tok, plain.n_seq)
    assert other.report.mean_reward == plain.report.mean_reward
    assert other.report.episodes == len(rewards) + failures
    assert other.report.excluded == ({"host_lost": failures} if failures else {})


@given(st.lists(st.lists(st.sampled_from([None, 0.0, 1.0]), max_size=5), max_size=5))
def test_kept_and_left_out_add_up_to_what_was_given(groups: list[list[float | None]]) -> None:
    batch = build_batch([group(*rewards, name=str(n)) for n, rewards in enumerate(groups)], trainer_version=0)
    report = batch.report
    assert len(report.fates) == len(groups)
    assert report.episodes == sum(map(len, groups))
    assert report.scored + sum(report.excluded.values()) == report.episodes
    trained = sum(fate.n_valid for fate in report.fates if fate.reason is None)
    assert trained == batch.n_seq == sum(len(samples) for samples in batch.groups)
    assert sum(report.lag_histogram.values()) == batch.n_tok


@pytest.mark.parametrize(
    ("rewards", "reason"),
    [((1.0, 1.0), "zero_variance"), ((1.0, None), "singleton"), ((None, None), "empty")],
)
def test_a_group_without_signal_trains_nothing_and_says_why(rewards: tuple, reason: str) -> None:
    batch = build_batch([group(*rewards), group(0.0, 1.0, name="h")], trainer_version=0)
    assert [len(samples) for samples in batch.groups] == [2]
    assert [fate.reason for fate in batch.report.fates] == [reason, None]


def test_coverage_stands_beside_the_mean() -> None:
    report = build_batch([group(1.0, 0.0, None, None)], trainer_version=0).report
    assert (report.mean_reward, report.coverage) == (0.5, 0.5)


def test_an_episode_that_was_graded_but_lost_its_tokens_leaves_gradient_and_baseline() -> None:
    members = group(1.0, 0.0, 1.0)
    members[2] = make_record(
        reward=1.0, index=2, in_gradient=False, in_baseline=False, cause="tokens_lost", complete=False
    )
    batch = build_batch([members], trainer_version=0)
    assert advantages(batch) == {"g-0": 0.5, "g-1": -0.5}
    assert batch.report.excluded == {"tokens_lost": 1}
    assert batch.report.scored == 3


@pytest.mark.parametrize("tokens", ["missing", "incomplete"])
def test_tokens_that_are_not_at_hand_exclude_whatever_the_outcome_says(tokens: str) -> None:
    record = make_record(reward=1.0, complete=tokens != "incomplete")
    if tokens == "missing":
        record = record.model_copy(update={"tokens": None})
    assert not is_valid(record)
    batch = build_batch([[record, *group(0.0, 1.0)]], trainer_version=0)
    assert batch.report.excluded == {"tokens_not_at_hand": 1}


def test_an_episode_without_generated_tokens_counts_in_the_baseline_but_not_in_the_denominators() -> None:
    silent = make_record(reward=0.0, own=[], index=2)
    batch = build_batch([[*group(1.0, 1.0), silent]], trainer_version=0)
    assert advantages(batch) == pytest.approx({"g-0": 1 / 3, "g-1": 1 / 3})
    assert batch.n_seq == 2


def test_tool_output_between_turns_is_not_trained() -> None:
    members = [make_record(reward=r, own=[10, 11, 12], observation=[50, 51], index=i) for i, r in enumerate((0.0, 1.0))]
    sample = build_batch([members], trainer_version=0).groups[0][0]
    assert [sample.ids[t] for t in sample.trained] == [10, 11, 12]
    assert sample.trained == (3, 4, 7)


def test_the_grouping_is_by_what_was_given_not_by_name() -> None:
    batch = build_batch([group(0.0, 1.0), group(1.0, 1.0, 0.0)], trainer_version=0)
    assert [fate.n_valid for fate in batch.report.fates] == [2, 3]
    assert [round(s.advantage, 3) for samples in batch.groups for s in samples] == [-0.5, 0.5, 0.333, 0.333, -0.667]


def weights(batch) -> list[tuple[float, ...]]:
    return [sample.lag_weights for samples in batch.groups for sample in samples]


def stale_group() -> list:
    return [
        make_record(reward=0.0, index=0, version=2),
        make_record(reward=1.0, index=1, version=5),
    ]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("mask", [(0.0, 0.0), (1.0, 1.0)]),
        ("drop_sample", [(0.0, 0.0), (1.0, 1.0)]),
        ("drop_group", [(0.0, 0.0), (0.0, 0.0)]),
        ("weight", [(0.0, 0.0), (0.8, 0.8)]),
    ],
)
def test_each_lag_rule_gives_its_weights_and_keeps_the_denominators(rule: str, expected: list) -> None:
    config = BatchConfig.model_validate({"lag_rule": rule, "max_lag": 2})
    batch = build_batch([stale_group()], trainer_version=6, config=config)
    assert weights(batch) == expected
    assert (batch.n_tok, batch.n_seq) == (4, 2)
    assert batch.report.oldest_lag == 4
    assert batch.report.lag_histogram == {1: 2, 4: 2}


def test_the_rule_error_stops_the_run() -> None:
    with pytest.raises(UsageError) as caught:
        build_batch([stale_group()], trainer_version=6, config=BatchConfig(lag_rule="error", max_lag=2))
    assert caught.value.code == "lag_above_bound"


def test_without_a_bound_every_token_keeps_its_weight() -> None:
    batch = build_batch([stale_group()], trainer_version=100, config=BatchConfig(max_lag=None))
    assert weights(batch) == [(1.0, 1.0), (1.0, 1.0)]


def test_a_token_from_the_future_is_an_error() -> None:
    with pytest.raises(ValueError, match="version 5"):
        build_batch([stale_group()], trainer_version=4)


def test_a_valid_episode_without_a_reward_is_an_error() -> None:
    with pytest.raises(ValueError, match="reward is None"):
        build_batch([[make_record(reward=None), make_record(reward=1.0)]], trainer_version=0)


def test_no_groups_make_an_empty_batch() -> None:
    batch = build_batch([], trainer_version=3)
    assert (batch.groups, batch.n_tok, batch.report.coverage, batch.report.mean_reward) == ((), 0, 0.0, None)

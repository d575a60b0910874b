"""Group advantages: excluded members change nothing, no information gives exactly nothing, order does not matter."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trainer.advantage import ESTIMATORS, group_advantages

rewards = st.floats(0, 1e6, allow_subnormal=False)
members = st.lists(st.tuples(rewards, st.sampled_from("abc"), st.booleans()), min_size=1, max_size=24)
estimators = st.sampled_from(ESTIMATORS)


def columns(rows: list[tuple[float, str, bool]]) -> tuple[list[float], list[str], list[bool]]:
    return [r for r, _, _ in rows], [g for _, g, _ in rows], [v for _, _, v in rows]


@given(members, estimators, st.randoms(use_true_random=False))
def test_any_order_of_the_rollouts_gives_the_same_advantages(rows: list, estimator: str, draw) -> None:
    before = group_advantages(*columns(rows), estimator=estimator).values
    order = list(range(len(rows)))
    draw.shuffle(order)
    after = group_advantages(*columns([rows[i] for i in order]), estimator=estimator).values
    assert after == tuple(before[i] for i in order)


@given(members, estimators, st.sampled_from([None, math.nan, math.inf, -1e300, 7.0]))
def test_what_stands_at_an_excluded_member_is_never_read(rows: list, estimator: str, filler: float | None) -> None:
    r, g, v = columns(rows)
    spoiled = [x if ok else filler for x, ok in zip(r, v, strict=True)]
    assert group_advantages(spoiled, g, v, estimator=estimator) == group_advantages(r, g, v, estimator=estimator)


@given(members, estimators)
def test_excluded_members_might_as_well_not_be_there(rows: list, estimator: str) -> None:
    kept = [row for row in rows if row[2]]
    values = group_advantages(*columns(rows), estimator=estimator).values
    alone = iter(group_advantages(*columns(kept), estimator=estimator).values)
    assert list(values) == [next(alone) if ok else 0.0 for _, _, ok in rows]


@given(members, estimators)
def test_advantages_of_a_group_sum_to_zero(rows: list, estimator: str) -> None:
    result = group_advantages(*columns(rows), estimator=estimator)
    for name in result.groups:
        own = [a for a, (_, g, _) in zip(result.values, rows, strict=True) if g == name]
        assert abs(sum(own)) <= 1e-9 * (1 + max(abs(a) for a in own))


@given(st.lists(rewards, min_size=2, max_size=12), estimators)
def test_a_constant_group_is_exactly_zero(values: list[float], estimator: str) -> None:
    same = [values[0]] * len(values)
    result = group_advantages(same, ["g"] * len(same), [True] * len(same), estimator=estimator)
    assert result.values == (0.0,) * len(same)
    assert result.groups["g"].reason == "zero_variance"


@given(st.lists(st.integers(0, 8), min_size=2, max_size=12), st.sampled_from([0, 1]))
def test_statistics_agree_with_the_standard_library(values: list[int], ddof: int) -> None:
    assume(min(values) < max(values))
    numbers = [float(v) for v in values]
    stats = group_advantages(numbers, ["g"] * len(numbers), [True] * len(numbers), estimator="grpo", ddof=ddof).groups[
        "g"
    ]
    assert stats.mean == pytest.approx(statistics.fmean(numbers), rel=1e-12)
    expected = statistics.stdev(numbers) if ddof else statistics.pstdev(numbers)
    assert stats.std == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_a_common_offset_costs_no_digits(offset: float) -> None:
    numbers = [offset + x for x in (0.0, 1.0, 1.0)]
    values = group_advantages(numbers, ["g"] * 3, [True] * 3, estimator="dr_grpo").values
    assert values == pytest.approx((-2 / 3, 1 / 3, 1 / 3), rel=1e-14)


def test_rewards_near_the_largest_double_do_not_overflow() -> None:
    values = group_advantages([1e300, -1e300], ["g"] * 2, [True] * 2, estimator="grpo").values
    assert values == pytest.approx((1.0, -1.0))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_group_of_one_trains_nothing_whatever_its_reward(estimator: str) -> None:
    result = group_advantages([5.0, None], ["g", "g"], [True, False], estimator=estimator)
    assert result.values == (0.0, 0.0)
    assert (result.groups["g"].reason, result.groups["g"].n_valid) == ("singleton", 1)


def test_groups_of_one_prompt_are_told_apart_by_their_id_alone() -> None:
    result = group_advantages([1.0, 1.0, 0.0, 0.0], ["x", "x", "y", "y"], [True] * 4)
    assert result.values == (0.0,) * 4


def test_seven_rewards_of_0_7_are_no_signal_in_spite_of_rounding() -> None:
    assert group_advantages([0.7] * 7, ["g"] * 7, [True] * 7, estimator="grpo").values == (0.0,) * 7


def test_maxrl_without_a_positive_mean_has_no_signal() -> None:
    result = group_advantages([-1.0, 1.0], ["g"] * 2, [True] * 2, estimator="maxrl")
    assert (result.values, result.groups["g"].reason) == ((0.0, 0.0), "zero_mean")


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_valid_member_without_a_finite_reward_is_an_error(bad: float | None, estimator: str) -> None:
    with pytest.raises(ValueError, match="rollout 1 of group 'g'"):
        group_advantages([1.0, bad], ["g", "g"], [True, True], estimator=estimator)


@pytest.mark.parametrize(
    "arguments",
    [([1.0], ["g", "g"], [True]), ([1.0], ["g"], [True, True])],
)
def test_lists_of_different_length_are_an_error(arguments: tuple) -> None:
    with pytest.raises(ValueError, match="one of each"):
        group_advantages(*arguments)


def test_unknown_estimators_and_divisors_are_errors() -> None:
    with pytest.raises(ValueError, match="unknown estimator"):
        group_advantages([1.0], ["g"], [True], estimator="best")
    with pytest.raises(ValueError, match="ddof"):
        group_advantages([1.0], ["g"], [True], ddof=2)

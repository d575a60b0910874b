"""The layout of a row: every trained token once, predicted from its own context, and the prefix once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.episode_records import make_sample, random_groups
from trainer.packing import PackedRow, common_prefix, micro_batches, pack
from trainer.sample import TrainSample


def context_of(row: PackedRow, m: int) -> list[int]:
    """The ids that trained token number m is predicted from, read off the layout alone."""
    place = row.predictors[m]
    block = next(block for block in row.blocks if block.start <= place < block.end)
    if place < block.start + block.prefix:
        return list(row.ids[block.start : place + 1])
    start = block.start + block.prefix
    for length in block.suffixes:
        if start <= place < start + length:
            return [*row.ids[block.start : block.start + block.prefix], *row.ids[start : place + 1]]
        start += length
    raise AssertionError("outside the block")


layouts = st.builds(
    random_groups, st.integers(0, 2**20), groups=st.integers(1, 4), size=st.integers(1, 5), turns=st.integers(1, 3)
)


@given(layouts)
def test_each_trained_token_is_predicted_from_exactly_the_tokens_before_it(groups: list[list[TrainSample]]) -> None:
    row = pack(groups)
    m = 0
    for sample in (sample for group in groups for sample in group):
        for t in sample.trained:
            assert context_of(row, m) == list(sample.ids[:t])
            assert row.targets[m] == sample.ids[t]
            assert row.positions[row.predictors[m]] == t - 1
            m += 1
    assert m == len(row.predictors)


@given(layouts)
def test_the_row_holds_each_prefix_once(groups: list[list[TrainSample]]) -> None:
    expected = sum(common_prefix(g) + sum(s.needed - common_prefix(g) for s in g) for g in groups)
    assert len(pack(groups).ids) == expected


@given(layouts, st.integers(1, 200))
def test_any_budget_keeps_every_sample_once_and_in_order(groups: list[list[TrainSample]], budget: int) -> None:
    rows = micro_batches(groups, token_budget=budget)
    assert [s for row in rows for s in row.samples] == [s for group in groups for s in group]


@given(layouts, st.integers(1, 200))
def test_a_row_exceeds_the_budget_only_for_a_single_sample(groups: list[list[TrainSample]], budget: int) -> None:
    for row in micro_batches(groups, token_budget=budget):
        assert len(row.ids) <= budget or len(row.samples) == 1


def test_a_group_that_fits_is_not_cut_in_two() -> None:
    groups = [[make_sample([1, 2, 3], [4, 5]), make_sample([1, 2, 3], [6, 7])] for _ in range(3)]
    assert [len(row.samples) for row in micro_batches(groups, token_budget=5)] == [2, 2, 2]


def test_equal_first_tokens_of_the_replies_are_shared_too() -> None:
    assert common_prefix([make_sample([1, 2], [3, 4, 5]), make_sample([1, 2], [3, 4, 6])]) == 4


def test_the_last_trained_token_is_not_computed() -> None:
    assert pack([[make_sample([1, 2, 3], [4, 5])]]).ids == (1, 2, 3, 4)


@pytest.mark.parametrize("trained", [[0], [5]])
def test_a_token_that_nothing_predicts_is_refused(trained: list[int]) -> None:
    with pytest.raises(ValueError, match="trained positions"):
        make_sample([1, 2], [3, 4], trained=trained)


def test_a_sample_without_trained_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to train"):
        make_sample([1, 2], [3], trained=[])

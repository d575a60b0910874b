"""The layout of a row: every trained token once, predicted from its own context, and what is shared once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.episode_records import make_sample, random_groups
from trainer import prefix_tree
from trainer.packing import PackedRow, micro_batches, pack
from trainer.prefix_tree import grow
from trainer.sample import TrainSample


@pytest.fixture(autouse=True)
def share_whatever_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_tree, "WORTH_SHARING", 1)


def flat(groups: list[list[TrainSample]]) -> list[TrainSample]:
    return [sample for group in groups for sample in group]


def context_of(row: PackedRow, m: int) -> list[int]:
    """The ids that trained token number m is predicted from, read off the layout alone."""
    place, start = row.predictors[m], 0
    for siblings in row.siblings:
        for length, path in zip(siblings.lengths, siblings.paths, strict=True):
            if start <= place < start + length:
                before = [token for a, b in ((0, siblings.shared), *path) for token in row.ids[a:b]]
                return [*before, *row.ids[start : place + 1]]
            start += length
    raise AssertionError("outside the row")


layouts = st.builds(
    random_groups,
    st.integers(0, 2**20),
    groups=st.integers(1, 4),
    size=st.integers(1, 5),
    turns=st.integers(1, 3),
    head=st.integers(0, 6),
)


@given(layouts)
def test_each_trained_token_is_predicted_from_exactly_the_tokens_before_it(groups: list[list[TrainSample]]) -> None:
    row = pack(flat(groups))
    m = 0
    for sample in flat(groups):
        for t in sample.trained:
            assert context_of(row, m) == list(sample.ids[:t])
            assert row.targets[m] == sample.ids[t]
            assert row.positions[row.predictors[m]] == t - 1
            m += 1
    assert m == len(row.predictors)


@given(layouts)
def test_no_context_is_computed_twice(groups: list[list[TrainSample]]) -> None:
    contexts = {sample.ids[: t + 1] for sample in flat(groups) for t in range(sample.needed)}
    assert len(pack(flat(groups)).ids) == len(contexts)


@given(layouts, st.integers(1, 100))
def test_a_segment_is_split_off_only_where_it_saves_enough(groups: list[list[TrainSample]], worth: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_tree, "WORTH_SHARING", worth)
        waiting = list(grow(flat(groups)).children)
        while waiting:
            segment = waiting.pop()
            assert len(segment.members) == 1 or segment.length * (len(segment.members) - 1) >= worth
            waiting += segment.children


@given(layouts, st.integers(1, 200))
def test_any_budget_keeps_every_sample_once_and_in_order(groups: list[list[TrainSample]], budget: int) -> None:
    rows = micro_batches(groups, token_budget=budget)
    assert [s for row in rows for s in row.samples] == flat(groups)


@given(layouts, st.integers(1, 200))
def test_a_row_exceeds_the_budget_only_for_a_single_sample(groups: list[list[TrainSample]], budget: int) -> None:
    for row in micro_batches(groups, token_budget=budget):
        assert len(row.ids) <= budget or len(row.samples) == 1


@given(layouts)
def test_padding_at_most_doubles_a_set(groups: list[list[TrainSample]]) -> None:
    for siblings in pack(flat(groups)).siblings:
        assert max(siblings.lengths) < 2 * min(siblings.lengths) or min(siblings.lengths) == 1


def test_a_group_that_fits_is_not_cut_in_two() -> None:
    groups = [[make_sample([n, 2, 3], [4, 5]), make_sample([n, 2, 3], [6, 7])] for n in (7, 8, 9)]
    assert [len(row.samples) for row in micro_batches(groups, token_budget=5)] == [2, 2, 2]


def test_a_prompt_that_groups_share_is_computed_once_for_all() -> None:
    samples = [make_sample([1, 2, 3, group], [9, reply]) for group in (4, 5) for reply in (6, 7)]
    # 1 2 3, then 4 and 5, then each group's common 9; the last token of a reply predicts nothing.
    assert sorted(pack(samples).ids) == [1, 2, 3, 4, 5, 9, 9]


def test_equal_first_tokens_of_the_replies_are_shared_too() -> None:
    assert pack([make_sample([1, 2], [3, 4, 5]), make_sample([1, 2], [3, 4, 6])]).ids == (1, 2, 3, 4)


def test_the_last_trained_token_is_not_computed() -> None:
    assert pack([make_sample([1, 2, 3], [4, 5])]).ids == (1, 2, 3, 4)


@pytest.mark.parametrize("trained", [[0], [5]])
def test_a_token_that_nothing_predicts_is_refused(trained: list[int]) -> None:
    with pytest.raises(ValueError, match="trained positions"):
        make_sample([1, 2], [3, 4], trained=trained)


def test_a_sample_without_trained_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to train"):
        make_sample([1, 2], [3], trained=[])

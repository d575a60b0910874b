"""The table of trained tokens: holes closed, padding empty, every number where its token is."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.episode_records import make_sample, random_groups
from trainer.token_table import token_table


@given(st.integers(0, 2**20), st.integers(1, 3))
def test_spreading_and_masking_gives_the_tokens_back_in_order(seed: int, turns: int) -> None:
    samples = [sample for group in random_groups(seed, turns=turns) for sample in group]
    table = token_table(samples)
    values_M = torch.arange(1.0, 1 + sum(len(sample.trained) for sample in samples))
    spread_BT = table.spread(values_M)
    assert torch.equal(spread_BT[table.mask_BT], values_M)
    assert (spread_BT[~table.mask_BT] == 0).all()
    assert table.mask_BT.sum(-1).tolist() == [len(sample.trained) for sample in samples]


def test_spreading_passes_the_gradient_to_its_token_alone() -> None:
    table = token_table([make_sample([1], [2, 3]), make_sample([1], [4])])
    values_M = torch.zeros(3, requires_grad=True)
    weights_BT = torch.tensor([[1.0, 2.0], [3.0, 100.0]])
    (table.spread(values_M) * weights_BT).sum().backward()
    assert values_M.grad.tolist() == [1.0, 2.0, 3.0]


def test_what_stood_between_trained_tokens_is_not_in_the_table() -> None:
    table = token_table([make_sample([1, 2], [3, 9, 9, 4], trained=[2, 5])])
    assert table.mask_BT.tolist() == [[True, True]]


def test_padding_has_no_lag_no_weight_and_no_logprob() -> None:
    table = token_table([make_sample([1], [2, 3]), make_sample([1], [4], advantage=-2.0)])
    assert table.lag_BT.tolist() == [[0, 0], [0, -1]]
    assert table.lag_weight_BT.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert table.engine_BT.tolist() == [[-1.0, -1.0], [-1.0, 0.0]]
    assert table.advantage_B.tolist() == [1.0, -2.0]

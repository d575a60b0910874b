"""Other weights for a rehearsal: clearly other, the same each time, and gone afterwards to the last bit."""

from __future__ import annotations

import pytest
import torch

from trainer.master_weights import MasterWeights


@pytest.fixture(params=[torch.bfloat16, torch.float32])
def weights(request) -> MasterWeights:
    torch.manual_seed(3)
    return MasterWeights(torch.nn.Linear(6, 4), dtype=request.param)


def published(weights: MasterWeights) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in weights.published()}


def test_within_it_every_weight_is_another_and_after_it_all_are_the_same(weights: MasterWeights) -> None:
    before = published(weights)
    masters = {name: tensor.clone() for name, tensor in weights.masters.items()}
    with weights.perturbed(scale=0.05, seed=0):
        within = published(weights)
    after = published(weights)
    assert all(not torch.equal(before[name], within[name]) for name in before)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(torch.equal(masters[name], weights.masters[name]) for name in masters)


def test_the_same_seed_gives_the_same_other_weights(weights: MasterWeights) -> None:
    seen = []
    for _ in range(2):
        with weights.perturbed(scale=0.05, seed=7):
            seen.append(published(weights))
    assert all(torch.equal(seen[0][name], seen[1][name]) for name in seen[0])


def test_an_error_within_it_gives_the_weights_back(weights: MasterWeights) -> None:
    before = published(weights)
    with pytest.raises(ZeroDivisionError), weights.perturbed(scale=0.05, seed=0):
        raise ZeroDivisionError
    assert all(torch.equal(before[name], published(weights)[name]) for name in before)

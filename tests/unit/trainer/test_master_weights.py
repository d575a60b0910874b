"""Masters in float32 behind a model in bf16: rounded out, gradients added in, tied weights held once."""

from __future__ import annotations

import pytest
import torch

from tests.fakes.episode_records import tiny_llama
from trainer.master_weights import MasterWeights

IDS = torch.tensor([[1, 2, 3, 4]])


def loss_of(model) -> torch.Tensor:
    return model(input_ids=IDS).logits.float().square().mean()


def test_the_masters_keep_what_bf16_would_lose() -> None:
    model = tiny_llama()
    exact = {name: p.detach().clone() for name, p in model.named_parameters()}
    masters = MasterWeights(model, dtype=torch.bfloat16)
    assert all(torch.equal(masters.masters[name], weight) for name, weight in exact.items())
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}


def test_a_step_too_small_for_bf16_adds_up_in_the_masters() -> None:
    model = tiny_llama()
    masters = MasterWeights(model, dtype=torch.bfloat16)
    name = "model.norm.weight"
    for _ in range(8):
        with torch.no_grad():
            masters.masters[name].add_(0.001)
        masters.to_model()
    assert dict(model.named_parameters())[name][0].item() == pytest.approx(1.008, abs=0.004)
    assert torch.tensor(1.0, dtype=torch.bfloat16).add(0.001).item() == 1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_two_passes_add_up_in_float32(dtype: torch.dtype) -> None:
    model = tiny_llama()
    masters = MasterWeights(model, dtype=dtype)
    masters.to_model()
    loss_of(model).backward()
    once = {name: weight.grad.clone() for name, weight in masters.masters.items()}
    loss_of(model).backward()
    for name, weight in masters.masters.items():
        assert weight.grad.dtype == torch.float32
        torch.testing.assert_close(weight.grad, 2 * once[name])


def test_bf16_parameters_hold_no_gradient_after_a_pass() -> None:
    model = tiny_llama()
    MasterWeights(model, dtype=torch.bfloat16)
    loss_of(model).backward()
    assert all(p.grad is None for p in model.parameters())


def test_in_float32_the_parameters_are_the_masters() -> None:
    model = tiny_llama()
    masters = MasterWeights(model, dtype=torch.float32)
    assert all(masters.masters[name] is p for name, p in model.named_parameters())


def test_tied_weights_are_held_and_published_once() -> None:
    masters = MasterWeights(tiny_llama(), dtype=torch.bfloat16)
    published = dict(masters.published())
    assert set(published) == set(masters.masters)
    assert "lm_head.weight" not in published
    assert {tensor.dtype for tensor in published.values()} == {torch.bfloat16}


def test_untouched_weights_get_a_gradient_of_zero() -> None:
    masters = MasterWeights(tiny_llama(), dtype=torch.bfloat16)
    masters.fill_gradients()
    assert all((weight.grad == 0).all() for weight in masters.masters.values())
    masters.drop_gradients()
    assert all(weight.grad is None for weight in masters.masters.values())

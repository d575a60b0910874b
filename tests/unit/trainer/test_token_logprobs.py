"""Chunked logprobs equal log_softmax in value and gradient, at every length and temperature."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer import token_logprobs as module
from trainer.token_logprobs import token_logprobs


@settings(deadline=None)
@given(m=st.integers(1, 700), temperature=st.floats(0.1, 3.0))
def test_value_and_gradients_equal_log_softmax(m: int, temperature: float) -> None:
    generator = torch.Generator().manual_seed(m)
    hidden_MD = torch.randn(m, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    head_VD = torch.randn(11, 6, dtype=torch.float64, generator=generator, requires_grad=True)
    targets_M = torch.randint(0, 11, (m,), generator=generator)
    weights_M = torch.randn(m, dtype=torch.float64, generator=generator)
    expected_M = ((hidden_MD @ head_VD.T) / temperature).log_softmax(-1)[torch.arange(m), targets_M]
    got_M = token_logprobs(hidden_MD, head_VD, targets_M, temperature=temperature)
    torch.testing.assert_close(got_M, expected_M, rtol=1e-12, atol=1e-12)
    for got, want in zip(
        torch.autograd.grad((got_M * weights_M).sum(), (hidden_MD, head_VD)),
        torch.autograd.grad((expected_M * weights_M).sum(), (hidden_MD, head_VD)),
        strict=True,
    ):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


def test_gradcheck_over_several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 3)
    hidden_MD = torch.randn(8, 4, dtype=torch.float64, requires_grad=True)
    head_VD = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    targets_M = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2])
    assert torch.autograd.gradcheck(lambda h, w: token_logprobs(h, w, targets_M, temperature=0.6), (hidden_MD, head_VD))


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_that_is_not_positive_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature"):
        token_logprobs(torch.zeros(1, 2), torch.zeros(3, 2), torch.tensor([0]), temperature=temperature)


def test_logprobs_of_bf16_states_are_float32() -> None:
    logprobs_M = token_logprobs(torch.ones(2, 4).bfloat16(), torch.ones(3, 4).bfloat16(), torch.tensor([0, 2]))
    assert logprobs_M.dtype == torch.float32
    torch.testing.assert_close(logprobs_M, torch.full((2,), -1.0986123))


def test_the_heads_gradient_in_bf16_goes_on_growing_over_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 1)
    tokens = 1024  # equal parts: a bf16 sum of them stands still from the 256th on
    hidden_MD, head_VD = torch.ones(tokens, 1).bfloat16(), torch.zeros(2, 1).bfloat16().requires_grad_()
    token_logprobs(hidden_MD, head_VD, torch.zeros(tokens, dtype=torch.long)).sum().backward()
    assert head_VD.grad.dtype == torch.bfloat16
    assert head_VD.grad[:, 0].tolist() == [tokens / 2, -tokens / 2]

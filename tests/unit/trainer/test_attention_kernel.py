"""Both kernels give the attention of the formula, in value and gradient, masked and causal, with shared key heads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer import attention_kernel
from trainer.attention_kernel import attend


def by_the_formula(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
    scores = (q @ k.transpose(-1, -2) * scale).masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def some(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


@given(
    sequences=st.integers(1, 3),
    groups=st.integers(1, 3),
    repeat=st.integers(1, 3),
    queries=st.integers(1, 5),
    prefix=st.integers(0, 4),
    few=st.booleans(),
)
def test_value_and_gradients_are_those_of_the_formula(
    sequences: int, groups: int, repeat: int, queries: int, prefix: int, *, few: bool
) -> None:
    q = some(1, sequences, groups * repeat, queries, 4)
    k, v = some(2, sequences, groups, prefix + queries, 4), some(3, sequences, groups, prefix + queries, 4)
    own = torch.ones(queries, queries, dtype=torch.bool).tril()
    mask = torch.cat([torch.ones(queries, prefix, dtype=torch.bool), own], dim=1)
    expected = by_the_formula(q, k, v, mask, 0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_kernel, "FEW_SCORES", 2**21 if few else 0)
        got = attend(q, k, v, mask=mask if prefix else None, scale=0.3)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(
        torch.autograd.grad(got.square().sum(), (q, k, v)),
        torch.autograd.grad(expected.square().sum(), (q, k, v)),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_scale_is_that_of_the_width_unless_given() -> None:
    q, k, v = some(1, 1, 2, 3, 16), some(2, 1, 2, 3, 16), some(3, 1, 2, 3, 16)
    torch.testing.assert_close(
        attend(q, k, v, mask=None, scale=None), attend(q, k, v, mask=None, scale=0.25), rtol=1e-12, atol=1e-12
    )


def test_products_in_bf16_are_as_exact_as_the_fused_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [some(n, 4, 3, 24, 64) for n in (1, 2, 3)]
    exact = attend(*inputs, mask=None, scale=None)
    rounded = [x.to(torch.bfloat16) for x in inputs]
    errors = []
    for few in (2**21, 0):
        monkeypatch.setattr(attention_kernel, "FEW_SCORES", few)
        errors.append((attend(*rounded, mask=None, scale=None).double() - exact).abs().mean().item())
    assert errors[0] < 1.2 * errors[1]


@pytest.mark.parametrize(
    ("device", "dtype", "masked", "repeats"),
    [
        ("cuda", torch.bfloat16, True, True),
        ("cuda", torch.bfloat16, False, False),
        ("cuda", torch.float32, False, True),
        ("cpu", torch.bfloat16, True, False),
        ("cpu", torch.float32, True, False),
    ],
)
def test_key_heads_are_repeated_where_no_fused_kernel_takes_them_shared(
    device: str, dtype: torch.dtype, masked: bool, repeats: bool
) -> None:
    assert attention_kernel.repeats_heads(device, dtype, masked=masked) is repeats


@pytest.mark.parametrize("masked", [False, True])
def test_repeated_heads_give_the_same(monkeypatch: pytest.MonkeyPatch, masked: bool) -> None:
    q, k, v = some(1, 2, 6, 5, 4), some(2, 2, 3, 5, 4), some(3, 2, 3, 5, 4)
    mask = torch.ones(5, 5, dtype=torch.bool).tril() if masked else None
    monkeypatch.setattr(attention_kernel, "FEW_SCORES", 0)
    found = []
    for repeats in (False, True):
        monkeypatch.setattr(attention_kernel, "repeats_heads", lambda *_args, answer=repeats, **_options: answer)
        out = attend(q, k, v, mask=mask, scale=None)
        found.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
    for plain, repeated in zip(*found, strict=True):
        torch.testing.assert_close(plain, repeated)

"""KL estimators: non-negative where they should be, right gradients, digits near zero, nothing from masked tokens."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.kl import KL_KINDS, KlClamps, exact_kl, kl_loss, kl_per_token
from trainer.loss.aggregate import Denominators

seeds = st.integers(0, 2**31)
NO_CLAMPS = KlClamps(None, None)


def pair(seed: int, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logp_BT = -torch.rand(3, 4, dtype=torch.float64, generator=generator)
    return logp_BT, logp_BT + torch.randn(3, 4, dtype=torch.float64, generator=generator) * spread


@given(seeds, st.sampled_from(KL_KINDS), st.sampled_from([math.inf, -math.inf, math.nan, -9999.0]))
def test_masked_tokens_have_value_and_gradient_zero_whatever_stands_there(seed: int, kind: str, filler: float) -> None:
    logp_BT, reference_BT = pair(seed)
    mask_BT = torch.rand(3, 4, generator=torch.Generator().manual_seed(seed)) < 0.5
    spoiled = [torch.where(mask_BT, x, torch.tensor(filler, dtype=torch.float64)) for x in (logp_BT, reference_BT)]
    spoiled[0].requires_grad_()
    value_BT = kl_per_token(kind, spoiled[0], spoiled[1], mask_BT, logp_old_BT=spoiled[1])
    (gradient_BT,) = torch.autograd.grad(value_BT.sum(), spoiled[0])
    assert (value_BT[~mask_BT] == 0).all()
    assert (gradient_BT[~mask_BT] == 0).all()
    assert gradient_BT.isfinite().all()


@given(seeds, st.floats(0, 5))
def test_k2_and_k3_are_never_negative(seed: int, spread: float) -> None:
    for kind in ("k2", "k3", "k3_value_k2_grad"):
        assert (kl_per_token(kind, *pair(seed, spread), torch.ones(3, 4)) >= 0).all()


@pytest.mark.parametrize(
    "kind", [kind for kind in KL_KINDS if kind not in {"k3_value_k2_grad", "k3_weighted_detached"}]
)
def test_the_gradient_is_that_of_the_value(kind: str) -> None:
    logp_BT, reference_BT = pair(1)
    logp_BT.requires_grad_()
    old_BT = reference_BT.detach() + 0.3
    assert torch.autograd.gradcheck(
        lambda x: kl_per_token(kind, x, reference_BT, torch.ones(3, 4), clamps=NO_CLAMPS, logp_old_BT=old_BT),
        (logp_BT,),
    )


def test_straight_through_has_the_value_of_k3_and_the_gradient_of_k2() -> None:
    logp_BT, reference_BT = pair(2)
    logp_BT.requires_grad_()
    every = torch.ones(3, 4)
    value_BT = kl_per_token("k3_value_k2_grad", logp_BT, reference_BT, every)
    assert torch.equal(value_BT, kl_per_token("k3", logp_BT, reference_BT, every))
    (gradient_BT,) = torch.autograd.grad(value_BT.sum(), logp_BT)
    torch.testing.assert_close(gradient_BT, (logp_BT - reference_BT).detach())


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-8])
def test_k3_keeps_its_digits_near_zero(size: float) -> None:
    l_BT = torch.full((1, 1), size, dtype=torch.float64, requires_grad=True)
    value_BT = kl_per_token("k3", l_BT, torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1), clamps=NO_CLAMPS)
    (gradient_BT,) = torch.autograd.grad(value_BT.sum(), l_BT)
    assert gradient_BT.item() == pytest.approx(-math.expm1(-size), rel=1e-12)
    assert value_BT.item() == pytest.approx(size**2 / 2, rel=1e-2, abs=1e-22)


def test_clamps_stop_value_and_gradient() -> None:
    logp_BT = torch.tensor([[-500.0, -3.0]], dtype=torch.float64, requires_grad=True)
    value_BT = kl_per_token("k3", logp_BT, torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 2))
    assert value_BT.tolist() == [[10.0, 10.0]]
    (gradient_BT,) = torch.autograd.grad(value_BT.sum(), logp_BT)
    assert gradient_BT.tolist() == [[0.0, 0.0]]


def test_a_weighted_kind_without_behaviour_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs the behaviour"):
        kl_per_token("k3_weighted", *pair(0), torch.ones(3, 4))


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="k3_weighted"):
        kl_per_token("k7", *pair(0), torch.ones(3, 4))


def test_the_loss_divides_by_the_global_count() -> None:
    def loss(value, mask, **counts) -> float:
        found = kl_loss(
            torch.tensor([value]), torch.tensor([mask]), coef=0.5, how="token_mean", denominators=Denominators(**counts)
        )
        return found.item()

    assert loss([1.0, 2.0], [1, 1], n_tok=6, n_seq=2) == pytest.approx(0.25)
    assert loss([1.0], [0], n_tok=0, n_seq=0) == 0.0


def test_the_loss_is_a_mean_of_the_same_kind_as_the_policys() -> None:
    value_BT, mask_BT = torch.tensor([[1.0, 3.0], [8.0, math.nan]]), torch.tensor([[1, 1], [1, 0]])
    counts = Denominators(n_tok=3, n_seq=2)
    by_sequence = kl_loss(value_BT, mask_BT, coef=1.0, how="seq_mean_token_mean", denominators=counts)
    assert by_sequence.item() == pytest.approx((2.0 + 8.0) / 2)


@given(seeds)
def test_the_exact_divergence_is_zero_only_for_equal_distributions(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    p, q = (torch.softmax(torch.randn(6, dtype=torch.float64, generator=generator), 0) for _ in range(2))
    assert exact_kl(p, p).item() == pytest.approx(0, abs=1e-15)
    assert exact_kl(p, q).item() > 0


def test_a_token_of_probability_zero_adds_nothing() -> None:
    p, q = torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5])
    assert exact_kl(p, q).item() == pytest.approx(math.log(2))
    assert exact_kl(q, p).item() == math.inf

"""Every policy loss: any division, padding and filler gives the same loss and gradient, and nothing is ever not finite."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from trainer.loss.aggregate import Denominators, aggregate, count_denominators
from trainer.loss.config import LossConfig
from trainer.loss.policy import policy_loss
from trainer.loss.preset import PRESETS
from trainer.loss.term import LossInputs

CONFIGS = [
    config.model_copy(update={"agg": agg, "length": 16.0})
    for config in (*(known.loss for known in PRESETS.values()), LossConfig(dual_clip=3.0))
    for agg in ("token_mean", "seq_mean_token_mean", "seq_mean_token_sum_norm")
]
configs = st.sampled_from(CONFIGS)
seeds = st.integers(0, 2**31)


def a_case(seed: int, *, rows: int = 4, width: int = 7, spread: float = 0.6) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def normal(scale: float) -> Tensor:
        return torch.randn(rows, width, dtype=torch.float64, generator=generator) * scale

    logp_BT = -normal(1).abs() - 0.1
    return {
        "logp": logp_BT,
        "old": logp_BT + normal(spread),
        "mu": logp_BT + normal(spread),
        "mask": torch.rand(rows, width, generator=generator) < 0.6,
        "advantage": torch.randn(rows, dtype=torch.float64, generator=generator),
    }


def loss_and_gradient(
    case: dict[str, Tensor], config: LossConfig, denominators: Denominators | None = None, weight=None
):
    logp_BT = case["logp"].clone().requires_grad_()
    inputs = LossInputs.of(
        logp_BT=logp_BT,
        logp_old_BT=case["old"],
        logp_mu_BT=case["mu"],
        mask_BT=case["mask"],
        advantage=case["advantage"],
    )
    whole = denominators or count_denominators(inputs.mask_BT, length=config.length)
    loss = policy_loss(inputs, config, whole, weight_BT=weight).loss
    (grad_BT,) = torch.autograd.grad(loss, logp_BT)
    return loss.item(), grad_BT


@given(seeds, configs, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_any_division_sums_to_the_undivided_loss_and_gradient(seed: int, config: LossConfig, parts: list[int]) -> None:
    case = a_case(seed)
    whole = count_denominators(case["mask"], length=config.length)
    expected, expected_grad = loss_and_gradient(case, config)
    total, grad_BT = 0.0, torch.zeros_like(expected_grad)
    for part in range(3):
        rows = [row for row, to in enumerate(parts) if to == part]
        loss, grad_rows = loss_and_gradient({name: t[rows] for name, t in case.items()}, config, whole)
        total += loss
        grad_BT[rows] += grad_rows
    assert total == pytest.approx(expected, rel=1e-12, abs=1e-15)
    torch.testing.assert_close(grad_BT, expected_grad, rtol=1e-12, atol=1e-15)


@given(
    seeds, configs, st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.0, -9999.0, math.inf, -math.inf, math.nan])
)
def test_padding_of_any_width_side_and_filler_changes_nothing(
    seed: int, config: LossConfig, left: int, right: int, filler: float
) -> None:
    case = a_case(seed)
    expected, expected_grad = loss_and_gradient(case, config)

    def padded(values: Tensor, fill: float) -> Tensor:
        return torch.nn.functional.pad(values, (left, right), value=fill)

    wide = {name: padded(case[name], filler) for name in ("logp", "old", "mu")}
    wide |= {"mask": padded(case["mask"], 0), "advantage": case["advantage"]}
    loss, grad_BT = loss_and_gradient(wide, config)
    assert loss == pytest.approx(expected, rel=1e-12, abs=1e-15)
    torch.testing.assert_close(grad_BT[:, left : left + 7], expected_grad, rtol=1e-12, atol=1e-15)
    assert grad_BT.abs().sum() == pytest.approx(expected_grad.abs().sum().item())


@given(seeds, configs, st.sampled_from([200.0, -200.0, math.inf, -math.inf, math.nan]))
def test_no_filler_at_a_masked_token_reaches_loss_or_gradient(seed: int, config: LossConfig, filler: float) -> None:
    case = a_case(seed)
    spoiled = dict(case)
    for name in ("logp", "old", "mu"):
        spoiled[name] = torch.where(case["mask"], case[name], torch.tensor(filler, dtype=torch.float64))
    clean, spoilt = loss_and_gradient(case, config), loss_and_gradient(spoiled, config)
    assert clean[0] == spoilt[0]
    assert torch.equal(clean[1], spoilt[1])
    assert (spoilt[1][~case["mask"]] == 0.0).all()


@given(seeds, configs, st.floats(0, 400))
def test_any_trainable_log_ratio_leaves_loss_and_gradient_finite(seed: int, config: LossConfig, spread: float) -> None:
    loss, grad_BT = loss_and_gradient(a_case(seed, spread=spread), config)
    assert math.isfinite(loss)
    assert grad_BT.isfinite().all()


@settings(max_examples=30)
@given(seeds, st.sampled_from([config for config in CONFIGS if config.loss not in {"cispo", "tis_pg"}]))
def test_the_gradient_is_that_of_the_value_where_the_weight_is_not_detached(seed: int, config: LossConfig) -> None:
    case = a_case(seed)
    _, grad_BT = loss_and_gradient(case, config)
    step = 1e-6
    row, column = (int(x) for x in case["mask"].nonzero()[0]) if case["mask"].any() else (0, 0)
    moved = [{**case, "logp": case["logp"].clone()} for _ in range(2)]
    moved[0]["logp"][row, column] += step
    moved[1]["logp"][row, column] -= step
    numeric = (loss_and_gradient(moved[0], config)[0] - loss_and_gradient(moved[1], config)[0]) / (2 * step)
    assert numeric == pytest.approx(grad_BT[row, column].item(), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.loss}-{c.agg}")
def test_on_policy_every_loss_is_the_plain_policy_gradient(config: LossConfig) -> None:
    case = a_case(1)
    case |= {"old": case["logp"], "mu": case["logp"]}
    _, grad_BT = loss_and_gradient(case, config)
    n = count_denominators(case["mask"])
    own_B = case["mask"].sum(-1, keepdim=True)
    scale_BT = {
        "token_mean": torch.full_like(own_B, n.n_tok),
        "seq_mean_token_mean": own_B * n.n_seq,
        "seq_mean_token_sum_norm": torch.full_like(own_B, n.n_seq * 16),
    }[config.agg]
    expected_BT = torch.where(case["mask"], -case["advantage"][:, None] / scale_BT, 0.0)
    torch.testing.assert_close(grad_BT, expected_BT, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.loss}-{c.agg}")
def test_a_batch_without_a_trainable_token_has_loss_and_gradient_zero(config: LossConfig) -> None:
    case = a_case(2)
    case["mask"] = torch.zeros_like(case["mask"])
    loss, grad_BT = loss_and_gradient(case, config)
    assert loss == 0.0
    assert (grad_BT == 0.0).all()


def test_a_weight_of_zero_keeps_the_tokens_place_in_the_denominator() -> None:
    case, config = a_case(3), LossConfig()
    weight_BT = torch.ones_like(case["logp"])
    weight_BT[0] = 0.0
    _, expected_BT = loss_and_gradient(case, config)
    _, grad_BT = loss_and_gradient(case, config, weight=weight_BT)
    assert (grad_BT[0] == 0).all()
    torch.testing.assert_close(grad_BT[1:], expected_BT[1:])


def test_advantages_may_be_given_per_token() -> None:
    case, config = a_case(4), LossConfig()
    per_token = {**case, "advantage": case["advantage"][:, None].expand_as(case["logp"]).clone()}
    per_token["advantage"][~case["mask"]] = math.nan
    assert loss_and_gradient(per_token, config)[0] == loss_and_gradient(case, config)[0]


@pytest.mark.parametrize("length", [None, 0.0, -1.0])
def test_the_sum_norm_refuses_to_take_the_padded_width(length: float | None) -> None:
    with pytest.raises(ValueError, match="padded width"):
        aggregate(torch.zeros(1, 1), torch.ones(1, 1).bool(), "seq_mean_token_sum_norm", Denominators(1, 1, length))

"""Correction rules: weights inside their bounds, rejections whole, denominators untouched, nothing ever not finite."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer.correction.drift import Drift, drift
from trainer.correction.rejection import geo_reject, k2_seq_max, k2_seq_mean, k2_token, veto
from trainer.correction.result import Correction, combine
from trainer.correction.rule import DRIFT_RULES
from trainer.correction.truncated import token_tis
from trainer.learner_config import CorrectionConfig

seeds = st.integers(0, 2**31)
names = st.sampled_from(sorted(DRIFT_RULES))


def a_drift(seed: int, *, spread: float = 0.5, rows: int = 4, width: int = 6) -> Drift:
    generator = torch.Generator().manual_seed(seed)
    engine_BT = -torch.rand(rows, width, dtype=torch.float64, generator=generator)
    moved_BT = engine_BT + torch.randn(rows, width, dtype=torch.float64, generator=generator) * spread
    return drift(moved_BT, engine_BT, torch.rand(rows, width, generator=generator) < 0.7)


def apply(name: str, of: Drift) -> Correction:
    return DRIFT_RULES[name](of, **CorrectionConfig(rule=name).options())


def of_rows(*rows: list[float]) -> Drift:
    d_BT = torch.tensor(rows, dtype=torch.float64)
    return drift(d_BT, torch.zeros_like(d_BT), torch.ones_like(d_BT))


@given(seeds, names, st.floats(0, 300))
def test_weights_are_finite_not_negative_and_zero_where_nothing_is_kept(seed: int, name: str, spread: float) -> None:
    result = apply(name, a_drift(seed, spread=spread))
    assert result.weight_BT.isfinite().all()
    assert (result.weight_BT >= 0).all()
    assert (result.weight_BT[~result.kept_BT] == 0.0).all()
    assert not (result.kept_BT & ~result.mask_BT).any()


@given(seeds, names)
def test_the_denominators_come_from_the_mask_before_the_rule(seed: int, name: str) -> None:
    of = a_drift(seed)
    result = apply(name, of)
    assert result.n_tok == int(of.mask_BT.sum())
    assert result.n_seq == int(of.mask_BT.any(-1).sum())


@given(seeds, names)
def test_policies_that_agree_are_left_alone(seed: int, name: str) -> None:
    result = apply(name, a_drift(seed, spread=0.0))
    assert torch.equal(result.weight_BT, result.mask_BT.double())
    assert (result.frac_masked, result.frac_seq_masked) == (0.0, 0.0)


@given(seeds, st.sampled_from(["seq_tis", "seq_mis", "geo_reject", "veto", "k2_seq_mean", "k2_seq_max"]))
def test_a_row_rule_keeps_a_row_whole_or_not_at_all(seed: int, name: str) -> None:
    result = apply(name, a_drift(seed, spread=1.5))
    for kept, mask in zip(result.kept_BT, result.mask_BT, strict=True):
        assert kept[mask].all() or not kept[mask].any()


@given(seeds, names, st.sampled_from([math.inf, -math.inf, math.nan, -9999.0]))
def test_no_filler_at_a_masked_token_changes_a_weight(seed: int, name: str, filler: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    trainer_BT, engine_BT = (torch.randn(3, 5, dtype=torch.float64, generator=generator) for _ in range(2))
    mask_BT = torch.rand(3, 5, generator=generator) < 0.5

    def spoiled(values_BT: Tensor) -> Tensor:
        return torch.where(mask_BT, values_BT, torch.tensor(filler, dtype=torch.float64))

    clean = apply(name, drift(trainer_BT, engine_BT, mask_BT))
    assert torch.equal(apply(name, drift(spoiled(trainer_BT), spoiled(engine_BT), mask_BT)).weight_BT, clean.weight_BT)


@given(seeds, names)
def test_a_correction_carries_no_gradient(seed: int, name: str) -> None:
    logp_BT = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    assert not apply(name, drift(logp_BT, torch.zeros(2, 3), torch.ones(2, 3))).weight_BT.requires_grad


@given(seeds, names)
def test_the_shares_count_what_was_rejected(seed: int, name: str) -> None:
    result = apply(name, a_drift(seed, spread=1.5))
    rejected = int((result.mask_BT & ~result.kept_BT).sum())
    assert result.frac_masked == (rejected / result.n_tok if result.n_tok else 0.0)
    lost = sum(keep is False for keep in result.seq_keep)
    assert result.frac_seq_masked == (lost / result.n_seq if result.n_seq else 0.0)


def test_bounds_are_inclusive() -> None:
    of = of_rows([0.0, 0.0])
    assert geo_reject(of, lo=1.0, hi=1.0).seq_keep == [True]
    assert veto(of, lo=1.0, hi=1.0).seq_keep == [True]
    assert k2_token(of_rows([1.0, -1.0]), max=0.5).kept_BT.all()


def test_the_mean_rule_forgives_what_the_max_rule_does_not() -> None:
    of = of_rows([1.0, 0.0, 0.0, 0.0])
    assert k2_seq_mean(of, max=0.2).seq_keep == [True]
    assert k2_seq_max(of, max=0.2).seq_keep == [False]


def test_the_geometric_ratio_does_not_grow_with_length() -> None:
    short, long = of_rows([0.1] * 2), of_rows([0.1] * 200)
    assert short.geometric_B1.item() == pytest.approx(long.geometric_B1.item())
    assert long.product_B1.item() > 1e8


def test_one_clamp_bounds_what_enters_exp() -> None:
    of = of_rows([15.0, 15.0])
    assert of.ratio_BT.max().item() == pytest.approx(math.exp(15))
    assert of.product_B1.item() == pytest.approx(math.exp(20))


def test_an_empty_batch_has_shares_of_zero() -> None:
    of = drift(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2))
    result = token_tis(of, cap=2.0)
    assert (result.frac_masked, result.frac_seq_masked, result.frac_clipped, result.seq_keep) == (0.0, 0.0, 0.0, [None])


def test_two_rules_together_multiply_and_both_must_keep() -> None:
    of = of_rows([0.5, 2.0])
    both = combine(k2_token(of, max=1.0), token_tis(of, cap=5.0))
    assert both.kept_BT.tolist() == [[True, False]]
    assert both.weight_BT.tolist() == [[pytest.approx(math.exp(0.5)), 0.0]]


def test_every_rule_of_the_settings_exists() -> None:
    rules = set(CorrectionConfig.model_fields["rule"].annotation.__args__)
    assert rules == {"none", *DRIFT_RULES}

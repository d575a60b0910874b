"""Divergence metrics: zero for equal policies, bounded where they must be, raw where a cap would hide."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.correction.drift import Drift, drift
from trainer.mismatch import MismatchMetrics, mismatch_metrics, ratio_quantiles


def metrics_of(d_BT: torch.Tensor, mask_BT: torch.Tensor | None = None) -> MismatchMetrics:
    here = drift(d_BT, torch.zeros_like(d_BT), torch.ones_like(d_BT) if mask_BT is None else mask_BT)
    return mismatch_metrics(here, cap=2.0, lo=0.5, hi=5.0)


def random_drift(seed: int, spread: float) -> torch.Tensor:
    return torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * spread


@given(st.integers(0, 2**31), st.floats(0, 50))
def test_bounds_that_always_hold(seed: int, spread: float) -> None:
    m = metrics_of(random_drift(seed, spread))
    assert m.k3 >= 0
    assert m.chi2_token >= -1
    assert 1 / m.n_tok <= m.ess_token * (1 + 1e-9)
    assert m.ess_token <= 1 + 1e-9
    assert m.ess_seq <= 1 + 1e-9
    assert m.ess_token_capped >= m.ess_token - 1e-9
    assert m.min_ratio <= m.max_ratio
    assert m.token_mult_prob_error >= 1


def test_equal_policies_have_no_divergence() -> None:
    m = metrics_of(torch.zeros(3, 4, dtype=torch.float64))
    assert (m.k1, m.k3, m.chi2_token, m.chi2_seq) == (0, 0, 0, 0)
    assert (m.ess_token, m.ess_seq, m.ppl_ratio, m.max_ratio, m.min_ratio) == (1, 1, 1, 1, 1)


def test_a_tiny_drift_keeps_its_digits_in_k3() -> None:
    assert metrics_of(torch.full((1, 1), 1e-6, dtype=torch.float64)).k3 == pytest.approx(5e-13, rel=1e-3)


def test_metrics_are_raw_a_cap_does_not_hide_an_outlier() -> None:
    m = metrics_of(torch.tensor([[0.0, math.log(100.0)]], dtype=torch.float64))
    assert m.max_ratio == pytest.approx(100.0)
    assert (m.frac_above_cap, m.frac_outside) == (0.5, 0.5)
    assert m.ess_token < 0.52 < m.ess_token_capped


def test_masked_tokens_and_empty_rows_do_not_count() -> None:
    d_BT = torch.tensor([[0.1, 9.0], [math.nan, math.inf]], dtype=torch.float64)
    m = metrics_of(d_BT, torch.tensor([[1, 0], [0, 0]]))
    assert (m.n_tok, m.n_seq) == (1, 1)
    assert m.k1 == pytest.approx(-0.1)


def test_an_empty_batch_measures_nothing() -> None:
    empty = torch.zeros(2, 2)
    assert metrics_of(empty, empty) == MismatchMetrics(0, 0)
    assert ratio_quantiles(drift(empty, empty, empty)) == {}


def test_quantiles_are_of_the_ratios() -> None:
    d_BT = torch.log(torch.arange(1.0, 102.0, dtype=torch.float64)).unsqueeze(0)
    here: Drift = drift(d_BT, torch.zeros_like(d_BT), torch.ones_like(d_BT))
    assert ratio_quantiles(here, at=(0.0, 0.5, 1.0)) == pytest.approx({0.0: 1.0, 0.5: 51.0, 1.0: 101.0})

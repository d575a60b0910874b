"""Rejection: keep a token or a row whole, or not at all; what is kept weighs 1, or its truncated ratio.

Source: geometric rule arXiv 2512.23075 and its note on collapse; the veto bounds 1e-4..100 are the field's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trainer.correction.drift import Drift, inside
from trainer.correction.result import Correction, corrected
from trainer.correction.truncated import tokens_above


def geo_reject(drift: Drift, *, lo: float | None, hi: float | None, cap: float | None = None) -> Correction:
    """Keep the row iff lo <= exp(mean of d) <= hi."""
    return _kept(drift, inside(drift.geometric_B1, lo, hi), cap)


def veto(drift: Drift, *, lo: float | None, hi: float | None, cap: float | None = None) -> Correction:
    """Keep the row iff every trainable token's e^d is in [lo, hi]: one outlier means that something broke."""
    fine_BT = inside(drift.ratio_BT, lo, hi) | ~drift.mask_BT
    return _kept(drift, fine_BT.all(dim=-1, keepdim=True), cap)


def k2_token(drift: Drift, *, max: float) -> Correction:  # noqa: A002 - the rule's own name in the contract
    """Keep the token iff d^2 / 2 <= max."""
    return _kept(drift, drift.d_BT.square() / 2 <= max, None)


def k2_seq_mean(drift: Drift, *, max: float) -> Correction:  # noqa: A002 - the rule's own name in the contract
    """Keep the row iff the mean of d^2 / 2 over its trainable tokens <= max."""
    mean_B1 = (drift.d_BT.square() / 2).sum(dim=-1, keepdim=True) / drift.tokens_B1
    return _kept(drift, mean_B1 <= max, None)


def k2_seq_max(drift: Drift, *, max: float) -> Correction:  # noqa: A002 - the rule's own name in the contract
    """Keep the row iff the largest d^2 / 2 of its trainable tokens <= max."""
    return _kept(drift, (drift.d_BT.square() / 2 <= max).all(dim=-1, keepdim=True), None)


def _kept(drift: Drift, keep: Tensor, cap: float | None) -> Correction:
    if cap is None:
        return corrected(torch.ones_like(drift.d_BT), keep, drift.mask_BT)
    return corrected(drift.ratio_BT.clamp(max=cap), keep, drift.mask_BT, clipped_BT=tokens_above(drift, cap))

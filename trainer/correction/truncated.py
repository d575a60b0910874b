"""Truncated importance sampling: a weight that never exceeds its cap; nothing is rejected."""

from __future__ import annotations

from torch import Tensor

from trainer.correction.drift import Drift
from trainer.correction.result import Correction, corrected


def token_tis(drift: Drift, *, cap: float) -> Correction:
    """Weight min(e^d, cap) per token."""
    above_BT = tokens_above(drift, cap)
    return corrected(drift.ratio_BT.clamp(max=cap), drift.mask_BT, drift.mask_BT, clipped_BT=above_BT)


def seq_tis(drift: Drift, *, cap: float) -> Correction:
    """Weight min(exp(sum of d), cap) for every token of the row; what is clipped is a row."""
    weight_BT = drift.product_B1.clamp(max=cap).expand_as(drift.d_BT)
    above_BT = (drift.product_B1 > cap) & drift.mask_BT
    return corrected(weight_BT, drift.mask_BT, drift.mask_BT, clipped_BT=above_BT, unit="sequence")


def tokens_above(drift: Drift, cap: float) -> Tensor:
    """[B, T] trainable tokens, rejected ones included, whose ratio is above ``cap``."""
    return (drift.ratio_BT > cap) & drift.mask_BT

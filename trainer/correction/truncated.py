"""Truncated importance sampling: a weight that never exceeds its cap; nothing is rejected."""

from __future__ import annotations

from torch import Tensor

from trainer.correction.drift import Drift
from trainer.correction.result import Correction, corrected, share


def token_tis(drift: Drift, *, cap: float) -> Correction:
    """Weight min(e^d, cap) per token."""
    return corrected(drift.ratio_BT.clamp(max=cap), drift.mask_BT, drift.mask_BT, frac_clipped=tokens_above(drift, cap))


def seq_tis(drift: Drift, *, cap: float) -> Correction:
    """Weight min(exp(sum of d), cap) for every token of the row; the clipped share is of rows with trainable tokens."""
    rows_B1 = drift.mask_BT.any(dim=-1, keepdim=True)
    clipped = share(int(((drift.product_B1 > cap) & rows_B1).sum()), int(rows_B1.sum()))
    weight_BT = drift.product_B1.clamp(max=cap).expand_as(drift.d_BT)
    return corrected(weight_BT, drift.mask_BT, drift.mask_BT, frac_clipped=clipped)


def tokens_above(drift: Drift, cap: float) -> float:
    """Share of trainable tokens, rejected ones included, whose ratio is above ``cap``."""
    above_BT: Tensor = (drift.ratio_BT > cap) & drift.mask_BT
    return share(int(above_BT.sum()), int(drift.mask_BT.sum()))

"""Masked importance sampling: the exact weight inside its bounds, 0 outside.

Source: token rule arXiv 2510.18855 (IcePop, 0.5..5); sequence rule 2512.23075.
"""

from __future__ import annotations

from trainer.correction.drift import Drift, inside
from trainer.correction.result import Correction, corrected


def token_mis(drift: Drift, *, lo: float | None, hi: float | None) -> Correction:
    """Weight e^d where lo <= e^d <= hi, else the token is rejected."""
    return corrected(drift.ratio_BT, inside(drift.ratio_BT, lo, hi), drift.mask_BT)


def seq_mis(drift: Drift, *, lo: float | None, hi: float | None) -> Correction:
    """Weight W = exp(sum of d) for the row where lo <= W <= hi, else the row is rejected."""
    return corrected(drift.product_B1.expand_as(drift.d_BT), inside(drift.product_B1, lo, hi), drift.mask_BT)

"""The clipped surrogate on a given ratio: shared by token ratios (PPO) and sequence ratios (GSPO)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Clipped(NamedTuple):
    """``loss_BT``, and where each bound was active: [B, T] booleans, not yet masked."""

    loss_BT: Tensor
    low_BT: Tensor
    high_BT: Tensor
    dual_BT: Tensor


def clipped_surrogate(
    ratio_BT: Tensor, advantage_BT: Tensor, *, eps_low: float, eps_high: float, dual_clip: float | None
) -> Clipped:
    """-min(r A, clip(r, 1 - eps_low, 1 + eps_high) A); with ``dual_clip`` c a token of A < 0 loses at most -c A.

    A bound is active strictly beyond it, so that an on-policy ratio of exactly 1 keeps its gradient.
    Source: arXiv 1707.06347; dual clip 1912.09729.
    """
    low_BT = (advantage_BT < 0) & (ratio_BT < 1 - eps_low)
    high_BT = (advantage_BT > 0) & (ratio_BT > 1 + eps_high)
    bounded_BT = torch.where(low_BT, 1 - eps_low, torch.where(high_BT, 1 + eps_high, ratio_BT))
    dual_BT = torch.zeros_like(low_BT)
    if dual_clip is not None:
        dual_BT = (advantage_BT < 0) & (ratio_BT > dual_clip)
        bounded_BT = torch.where(dual_BT, dual_clip, bounded_BT)
    return Clipped(-bounded_BT * advantage_BT, low_BT, high_BT, dual_BT)

"""Importance ratios that no masked token can spoil.

Law 4: what stands at a masked position is replaced before the subtraction, so that neither the value nor the gradient
ever meets an infinity, a NaN or a sentinel that a filler brought. ``where(mask, exp(x), 0)`` is not enough: its
gradient is 0 * inf.
"""

from __future__ import annotations

import torch
from torch import Tensor


def at_trained(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, T] ``values`` where ``mask`` is set, exactly 0 with gradient 0 elsewhere."""
    return torch.where(mask_BT, values_BT, torch.zeros((), dtype=values_BT.dtype, device=values_BT.device))


def log_ratio(logp_BT: Tensor, other_BT: Tensor, mask_BT: Tensor, *, clamp: float | None = None) -> Tensor:
    """[B, T] ``logp - other`` at trained tokens, 0 elsewhere; clamped to +-``clamp`` with derivative 0 outside."""
    d_BT = at_trained(logp_BT, mask_BT) - at_trained(other_BT, mask_BT)
    return d_BT if clamp is None else d_BT.clamp(-clamp, clamp)

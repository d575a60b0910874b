"""CISPO: REINFORCE with a clipped, detached importance weight; no token loses its gradient (arXiv 2506.13585)."""

from __future__ import annotations

from trainer.loss.ratio import at_trained, log_ratio
from trainer.loss.term import LossInputs, TokenLoss


def cispo(inputs: LossInputs, *, eps_low: float, eps_high: float, log_ratio_clamp: float = 20.0) -> TokenLoss:
    """-sg(clip(r, 1 - eps_low, 1 + eps_high)) A log pi; ``eps_low`` 1.0 means no lower bound.

    Bounds: trainable tokens whose ratio is outside the bounds, whatever the sign of A.
    """
    mask_BT = inputs.mask_BT
    ratio_BT = log_ratio(inputs.logp_BT.detach(), inputs.logp_old_BT, mask_BT, clamp=log_ratio_clamp).exp()
    weight_BT = ratio_BT.clamp(1 - eps_low, 1 + eps_high)
    loss_BT = -weight_BT * inputs.advantage_BT * at_trained(inputs.logp_BT, mask_BT)
    return TokenLoss(
        at_trained(loss_BT, mask_BT),
        {
            "clip_low": (ratio_BT < 1 - eps_low) & mask_BT,
            "clip_high": (ratio_BT > 1 + eps_high) & mask_BT,
        },
    )

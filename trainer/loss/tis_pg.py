"""Policy gradient with a truncated importance weight against the engine's own logprobs.

Source: public note of F. Yao and others (2025).
"""

from __future__ import annotations

from trainer.loss.ratio import at_trained, log_ratio
from trainer.loss.term import LossInputs, TokenLoss


def tis_pg(inputs: LossInputs, *, cap: float, log_ratio_clamp: float = 20.0) -> TokenLoss:
    """-sg(min(w, cap)) A log pi with w = exp(logp - logp_mu). ``capped``: trainable tokens with w above it."""
    mask_BT = inputs.mask_BT
    weight_BT = log_ratio(inputs.logp_BT.detach(), inputs.logp_mu_BT, mask_BT, clamp=log_ratio_clamp).exp()
    loss_BT = -weight_BT.clamp(max=cap) * inputs.advantage_BT * at_trained(inputs.logp_BT, mask_BT)
    return TokenLoss(at_trained(loss_BT, mask_BT), {"capped": (weight_BT > cap) & mask_BT})

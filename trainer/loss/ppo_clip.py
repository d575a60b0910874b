"""PPO's clipped loss per token: GRPO, DAPO and Dr. GRPO are presets of it.

Source: arXiv 1707.06347, 2402.03300, 2503.14476.
"""

from __future__ import annotations

from trainer.loss.clip import clipped_surrogate
from trainer.loss.ratio import at_trained, log_ratio
from trainer.loss.term import LossInputs, TokenLoss


def ppo_clip(
    inputs: LossInputs,
    *,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
    log_ratio_clamp: float = 20.0,
) -> TokenLoss:
    """-min(r A, clip(r) A) with r = exp(logp - logp_old)."""
    mask_BT = inputs.mask_BT
    ratio_BT = log_ratio(inputs.logp_BT, inputs.logp_old_BT, mask_BT, clamp=log_ratio_clamp).exp()
    clipped = clipped_surrogate(ratio_BT, inputs.advantage_BT, eps_low=eps_low, eps_high=eps_high, dual_clip=dual_clip)
    return TokenLoss(
        at_trained(clipped.loss_BT, mask_BT),
        {
            "clip_low": clipped.low_BT & mask_BT,
            "clip_high": clipped.high_BT & mask_BT,
            "dual": clipped.dual_BT & mask_BT,
        },
    )

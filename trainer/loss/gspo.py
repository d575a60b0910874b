"""GSPO: one ratio per sequence, the geometric mean of its token ratios (arXiv 2507.18071)."""

from __future__ import annotations

from trainer.loss.clip import clipped_surrogate
from trainer.loss.ratio import at_trained, log_ratio
from trainer.loss.term import LossInputs, TokenLoss


def gspo(
    inputs: LossInputs,
    *,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
    log_ratio_clamp: float = 20.0,
) -> TokenLoss:
    """-min(s A, clip(s) A) at every token, s = exp(mean over the sequence's trainable tokens of log r).

    The gradient flows through all trainable tokens of the sequence. The bounds are on sequences, not tokens.
    """
    mask_BT = inputs.mask_BT
    d_BT = log_ratio(inputs.logp_BT, inputs.logp_old_BT, mask_BT, clamp=log_ratio_clamp)
    n_tokens_B1 = mask_BT.sum(dim=-1, keepdim=True).clamp(min=1)
    ratio_BT = (d_BT.sum(dim=-1, keepdim=True) / n_tokens_B1).exp().expand_as(d_BT)
    clipped = clipped_surrogate(ratio_BT, inputs.advantage_BT, eps_low=eps_low, eps_high=eps_high, dual_clip=dual_clip)
    return TokenLoss(
        at_trained(clipped.loss_BT, mask_BT),
        {
            "clip_low": clipped.low_BT & mask_BT,
            "clip_high": clipped.high_BT & mask_BT,
            "dual": clipped.dual_BT & mask_BT,
        },
        unit="sequence",
    )

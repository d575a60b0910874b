"""Decoupled PPO: the clip is anchored on a proximal policy, the behaviour is corrected by a detached weight.

Source: arXiv 2110.00641, as used in 2505.24298.
"""

from __future__ import annotations

import math

from trainer.loss.ppo_clip import ppo_clip
from trainer.loss.ratio import log_ratio
from trainer.loss.term import LossInputs, TokenLoss


def decoupled_ppo(
    inputs: LossInputs,
    *,
    eps_low: float,
    eps_high: float,
    dual_clip: float | None = None,
    rho_cap: float | None = None,
    log_ratio_clamp: float = 20.0,
) -> TokenLoss:
    """sg(rho) times the `ppo_clip` term, rho = exp(logp_old - logp_mu), at most ``rho_cap``.

    Bounds: those of `ppo_clip`, and ``rho_capped``, the trainable tokens with rho above its cap.
    """
    mask_BT = inputs.mask_BT
    rho_BT = log_ratio(inputs.logp_old_BT, inputs.logp_mu_BT, mask_BT, clamp=log_ratio_clamp).exp()
    term = ppo_clip(inputs, eps_low=eps_low, eps_high=eps_high, dual_clip=dual_clip, log_ratio_clamp=log_ratio_clamp)
    bound = math.inf if rho_cap is None else rho_cap
    capped_BT = (rho_BT > bound) & mask_BT
    return TokenLoss(rho_BT.clamp(max=bound) * term.loss_BT, {**term.beyond, "rho_capped": capped_BT})

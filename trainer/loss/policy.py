"""The policy loss of one micro-batch: mechanism, then correction weight, then aggregation.

Promises: exactly 0 at masked tokens, in value and gradient; the sum over any division of a batch is the loss of the
whole, since the denominators are given (law 3). Does not compute a ratio, a weight or a count itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from trainer.loss.aggregate import Denominators, aggregate
from trainer.loss.cispo import cispo
from trainer.loss.config import LossConfig
from trainer.loss.decoupled_ppo import decoupled_ppo
from trainer.loss.gspo import gspo
from trainer.loss.ppo_clip import ppo_clip
from trainer.loss.term import LossInputs, TokenLoss
from trainer.loss.tis_pg import tis_pg


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """``loss``: this share's part of the global loss, a scalar to minimise. ``term``: what it was put together from."""

    loss: Tensor
    term: TokenLoss


def token_loss(inputs: LossInputs, config: LossConfig) -> TokenLoss:
    """The configured mechanism's loss per token."""
    c = config
    match c.loss:
        case "ppo_clip":
            return ppo_clip(
                inputs, eps_low=c.eps_low, eps_high=c.eps_high, dual_clip=c.dual_clip, log_ratio_clamp=c.log_ratio_clamp
            )
        case "gspo":
            return gspo(
                inputs, eps_low=c.eps_low, eps_high=c.eps_high, dual_clip=c.dual_clip, log_ratio_clamp=c.log_ratio_clamp
            )
        case "cispo":
            return cispo(inputs, eps_low=c.eps_low, eps_high=c.eps_high, log_ratio_clamp=c.log_ratio_clamp)
        case "tis_pg":
            return tis_pg(inputs, cap=c.cap, log_ratio_clamp=c.log_ratio_clamp)
        case "decoupled_ppo":
            return decoupled_ppo(
                inputs,
                eps_low=c.eps_low,
                eps_high=c.eps_high,
                dual_clip=c.dual_clip,
                rho_cap=c.rho_cap,
                log_ratio_clamp=c.log_ratio_clamp,
            )


def policy_loss(
    inputs: LossInputs, config: LossConfig, denominators: Denominators, *, weight_BT: Tensor | None = None
) -> PolicyLoss:
    """The loss; ``weight_BT`` is a correction's weight [B, T], constant for the gradient.

    A token whose weight is 0 keeps its place in the denominator: `Denominators` come from the mask alone.
    """
    term = token_loss(inputs, config)
    loss_BT = term.loss_BT if weight_BT is None else term.loss_BT * weight_BT.detach()
    return PolicyLoss(aggregate(loss_BT, inputs.mask_BT, config.agg, denominators), term)

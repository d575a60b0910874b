"""What every policy-loss mechanism takes and gives.

Advantages, old and engine logprobs are constants here, whatever they were made from; the gradient flows through
``logp_BT`` alone. Legend: B sequences, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class LossInputs:
    """[B, T] tensors of one micro-batch.

    Attributes:
        logp_BT: log pi of the current policy; the gradient is taken with respect to these.
        logp_old_BT: log pi_old, the policy at the start of the update; anchored on the engine it equals ``logp_mu_BT``.
        logp_mu_BT: log mu, as the engine recorded it.
        mask_BT: True at trainable tokens.
        advantage_BT: advantage per token, constant.
    """

    logp_BT: Tensor
    logp_old_BT: Tensor
    logp_mu_BT: Tensor
    mask_BT: Tensor
    advantage_BT: Tensor

    @staticmethod
    def of(
        *, logp_BT: Tensor, logp_old_BT: Tensor, logp_mu_BT: Tensor, mask_BT: Tensor, advantage: Tensor
    ) -> LossInputs:
        """Inputs with ``advantage`` given per sequence [B] or per token [B, T]; masked entries of it are never read."""
        mask_BT = mask_BT.bool()
        per_token_BT = advantage.unsqueeze(-1).expand_as(logp_BT) if advantage.dim() == 1 else advantage
        clean_BT = torch.where(
            mask_BT, per_token_BT, torch.zeros((), dtype=per_token_BT.dtype, device=per_token_BT.device)
        )
        return LossInputs(logp_BT, logp_old_BT.detach(), logp_mu_BT.detach(), mask_BT, clean_BT.detach())


Unit = Literal["token", "sequence"]
"""What a bound is put on, and therefore what is counted beyond it."""


@dataclass(frozen=True, slots=True)
class TokenLoss:
    """[B, T] loss to minimise, exactly 0 at masked tokens, and what hit each bound.

    ``beyond``: by bound, [B, T] True at trainable tokens beyond it; all of a sequence's where ``unit`` is the sequence.
    """

    loss_BT: Tensor
    beyond: dict[str, Tensor] = field(default_factory=dict)
    unit: Unit = "token"

    @property
    def counts(self) -> dict[str, int]:
        """Units beyond each bound."""
        return {name: units_in(hit_BT, self.unit) for name, hit_BT in self.beyond.items()}


def units_in(chosen_BT: Tensor, unit: Unit) -> int:
    """How many tokens are chosen, or how many sequences have one that is."""
    return int((chosen_BT.any(dim=-1) if unit == "sequence" else chosen_BT).sum())

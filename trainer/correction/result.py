"""What every correction gives: a weight per token, and how much of the batch it touched (law 11)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.loss.term import Unit, units_in


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of one batch.

    Attributes:
        weight_BT: [B, T] factor of each token's loss; 0 at masked and at rejected tokens; carries no gradient.
        kept_BT: [B, T] trainable tokens that the rule did not reject.
        mask_BT: [B, T] trainable tokens before the rule: the loss's denominators come from here, so a rejected token
            keeps its place in them.
        clipped_BT: [B, T] trainable tokens whose raw ratio was above the cap, or whose row's was; `None` without a cap.
        unit: what the cap is on.
    """

    weight_BT: Tensor
    kept_BT: Tensor
    mask_BT: Tensor
    clipped_BT: Tensor | None = None
    unit: Unit = "token"

    @property
    def frac_clipped(self) -> float | None:
        """Share of units whose raw ratio was above the cap; `None` without a cap."""
        if self.clipped_BT is None:
            return None
        return share(units_in(self.clipped_BT, self.unit), units_in(self.mask_BT, self.unit))

    @property
    def n_tok(self) -> int:
        """Trainable tokens."""
        return int(self.mask_BT.sum())

    @property
    def n_seq(self) -> int:
        """Rows with at least one trainable token."""
        return int(self.mask_BT.any(dim=-1).sum())

    @property
    def seq_keep(self) -> list[bool | None]:
        """[B] True where a trainable token was kept, `None` where the row had none."""
        has, kept = self.mask_BT.any(dim=-1).tolist(), self.kept_BT.any(dim=-1).tolist()
        return [bool(k) if h else None for h, k in zip(has, kept, strict=True)]

    @property
    def frac_masked(self) -> float:
        """Rejected trainable tokens over trainable tokens, 0 for an empty batch."""
        return share(int((self.mask_BT & ~self.kept_BT).sum()), self.n_tok)

    @property
    def frac_seq_masked(self) -> float:
        """Rows that lost all their trainable tokens over rows that had any, 0 for an empty batch."""
        return share(sum(keep is False for keep in self.seq_keep), self.n_seq)


def share(part: int, whole: int) -> float:
    """``part / whole``, 0 where there is nothing."""
    return part / whole if whole else 0.0


def corrected(
    weight_BT: Tensor,
    kept_BT: Tensor,
    mask_BT: Tensor,
    *,
    clipped_BT: Tensor | None = None,
    unit: Unit = "token",
) -> Correction:
    """A correction whose weight is 0 wherever a token is masked or rejected, detached."""
    kept_BT = kept_BT.expand_as(mask_BT) & mask_BT
    weight_BT = torch.where(kept_BT, weight_BT.detach().expand_as(kept_BT), torch.zeros((), dtype=weight_BT.dtype))
    return Correction(weight_BT, kept_BT, mask_BT, clipped_BT, unit)


def combine(first: Correction, second: Correction) -> Correction:
    """Both rules at once: weights multiply, a token stays only if both keep it."""
    capped = first if second.clipped_BT is None else second
    kept_BT = first.kept_BT & second.kept_BT
    return Correction(first.weight_BT * second.weight_BT, kept_BT, first.mask_BT, capped.clipped_BT, capped.unit)

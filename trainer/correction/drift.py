"""The log-ratio d = log pi_trainer - log mu_engine, and its reductions over a row, ready for exp.

Masked positions are 0 before anything else happens (law 4). One clamp, on what enters exp: d itself, its sum, or its
mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from trainer.loss.ratio import log_ratio

CLAMP = 20.0


@dataclass(frozen=True, slots=True)
class Drift:
    """``d_BT``: [B, T] log-ratio, unclamped, 0 at masked tokens. ``mask_BT``: [B, T] trainable tokens."""

    d_BT: Tensor
    mask_BT: Tensor

    @property
    def tokens_B1(self) -> Tensor:
        """[B, 1] trainable tokens of each row, at least 1."""
        return self.mask_BT.sum(dim=-1, keepdim=True).clamp(min=1)

    @property
    def ratio_BT(self) -> Tensor:
        """[B, T] e^d per token."""
        return self.d_BT.clamp(-CLAMP, CLAMP).exp()

    @property
    def product_B1(self) -> Tensor:
        """[B, 1] exp(sum of d): the ratio of the whole row."""
        return self.d_BT.sum(dim=-1, keepdim=True).clamp(-CLAMP, CLAMP).exp()

    @property
    def geometric_B1(self) -> Tensor:
        """[B, 1] exp(mean of d): the row's ratio per token, whose spread does not grow with length."""
        return (self.d_BT.sum(dim=-1, keepdim=True) / self.tokens_B1).clamp(-CLAMP, CLAMP).exp()


def drift(logp_trainer_BT: Tensor, logp_engine_BT: Tensor, mask_BT: Tensor) -> Drift:
    """The drift of a batch; [B, T] each. Detached: a correction is a constant for the gradient."""
    mask_BT = mask_BT.bool()
    return Drift(log_ratio(logp_trainer_BT.detach(), logp_engine_BT.detach(), mask_BT), mask_BT)


def inside(values: Tensor, low: float | None, high: float | None) -> Tensor:
    """Where ``low <= values <= high``, bounds inclusive; `None` is no bound."""
    kept = values == values  # noqa: PLR0124 - all true but NaN, which no bound keeps
    if low is not None:
        kept &= values >= low
    if high is not None:
        kept &= values <= high
    return kept

"""From token losses to one number, with denominators of the GLOBAL batch.

Promises: summing this over any division into micro-batches and ranks gives the loss and gradient of the undivided
batch, and padding changes nothing (law 3). A framework that averages gradients over W ranks must multiply by W. Whole
rows only: a sequence cut over two micro-batches would count its own length wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from trainer.loss.config import Aggregation


@dataclass(frozen=True, slots=True)
class Denominators:
    """Counts over the global batch.

    Attributes:
        n_tok: trainable tokens, from the mask before any correction: a rejected token keeps its place.
        n_seq: sequences with at least one trainable token.
        length: the constant L of ``seq_mean_token_sum_norm``, in tokens; never the padded width.
    """

    n_tok: int
    n_seq: int
    length: float | None = None


def count_denominators(mask_BT: Tensor, *, length: float | None = None) -> Denominators:
    """The denominators of a batch that is here as a whole."""
    return Denominators(n_tok=int(mask_BT.sum()), n_seq=int(mask_BT.any(dim=-1).sum()), length=length)


def aggregate(loss_BT: Tensor, mask_BT: Tensor, how: Aggregation, denominators: Denominators) -> Tensor:
    """This share's part of the global loss, a scalar; ``loss_BT`` is 0 wherever ``mask_BT`` is.

    Source: the names follow the field's ``agg_loss``; n_seq counts only sequences with trainable tokens.

    Raises:
        ValueError: ``seq_mean_token_sum_norm`` without a positive length.
    """
    # An empty batch has a numerator of exactly 0, so any positive denominator gives loss 0 and gradient 0, never NaN.
    n_tok, n_seq = max(denominators.n_tok, 1), max(denominators.n_seq, 1)
    match how:
        case "token_mean":
            return loss_BT.sum() / n_tok
        case "seq_mean_token_mean":
            own_tokens_B = mask_BT.sum(dim=-1).clamp(min=1)
            return (loss_BT.sum(dim=-1) / own_tokens_B).sum() / n_seq
        case "seq_mean_token_sum_norm":
            if denominators.length is None or denominators.length <= 0:
                raise ValueError("seq_mean_token_sum_norm needs a constant length L > 0: the padded width is none")
            return loss_BT.sum() / (n_seq * denominators.length)

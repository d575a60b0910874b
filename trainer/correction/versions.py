"""Which weight version produced each token, and how far behind the learner it is.

Lag of a token = the learner's version minus the token's. Spans may come in any order, may be empty, and need not cover
tokens that carry no loss; everything else about them is checked, since a wrong lag is worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from envsdk.episode.record import VersionSpan


@dataclass(frozen=True, slots=True)
class TokenLags:
    """``lag_BT``: [B, T] versions behind the learner, -1 at masked tokens. ``mask_BT``: [B, T] trainable tokens."""

    lag_BT: Tensor
    mask_BT: Tensor

    @property
    def oldest_B(self) -> list[int | None]:
        """[B] lag of the row's oldest trainable token, `None` where it has none."""
        has = self.mask_BT.any(dim=-1).tolist()
        worst = self.lag_BT.amax(dim=-1).tolist() if self.lag_BT.numel() else [-1] * len(has)
        return [int(lag) if h else None for lag, h in zip(worst, has, strict=True)]


def token_lags(spans: Sequence[Sequence[VersionSpan]], mask_BT: Tensor, *, trainer_version: int) -> TokenLags:
    """Lag of every trainable token.

    Args:
        spans: [B] the row's spans, in columns of ``mask_BT``.
        mask_BT: [B, T] True at trainable tokens.
        trainer_version: version of the weights about to be updated.

    Raises:
        ValueError: a trainable token without a span; a token under two versions; a version above the trainer's.
    """
    mask_BT = mask_BT.bool()
    version_BT = torch.full(mask_BT.shape, -1, dtype=torch.long)
    if len(spans) != mask_BT.shape[0]:
        raise ValueError(f"{len(spans)} lists of spans for {mask_BT.shape[0]} rows")
    for row, row_spans in enumerate(spans):
        for span in row_spans:
            _paint(version_BT[row], span, row, trainer_version)
    unknown_BT = mask_BT & (version_BT < 0)
    if unknown_BT.any():
        row, column = (int(x) for x in unknown_BT.nonzero()[0])
        raise ValueError(f"trainable token {column} of row {row} has no weight version: its lag cannot be known")
    return TokenLags(torch.where(mask_BT, trainer_version - version_BT, -1), mask_BT)


def _paint(version_T: Tensor, span: VersionSpan, row: int, trainer_version: int) -> None:
    if span.start >= span.end:
        if span.start == span.end:
            return
        raise ValueError(f"row {row}: span {span.start}..{span.end} ends before it starts")
    if not 0 <= span.version <= trainer_version:
        raise ValueError(
            f"row {row}: version {span.version} in a span is not in 0..{trainer_version}, the trainer's own"
        )
    covered_T = version_T[span.start : span.end]
    if ((covered_T >= 0) & (covered_T != span.version)).any():
        raise ValueError(
            f"row {row}: span {span.start}..{span.end} of version {span.version} overlaps another version's"
        )
    covered_T.fill_(span.version)

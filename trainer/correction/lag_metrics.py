"""How old the tokens of a batch are: oldest, mean and histogram, over trainable tokens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trainer.correction.versions import TokenLags


@dataclass(frozen=True, slots=True)
class LagMetrics:
    """Lag of one batch, in weight versions.

    Attributes:
        oldest: [B] lag of each row's oldest trainable token, `None` where it has none.
        max_oldest, mean_oldest: over rows that have one; `None` for an empty batch.
        mean_token_lag: over trainable tokens; `None` for an empty batch.
        histogram: lag -> number of trainable tokens, ascending.
    """

    oldest: tuple[int | None, ...]
    max_oldest: int | None
    mean_oldest: float | None
    mean_token_lag: float | None
    histogram: dict[int, int]
    n_tok: int


def lag_metrics(lags: TokenLags) -> LagMetrics:
    """Metrics of one batch's lags."""
    oldest = lags.oldest_B
    known = [lag for lag in oldest if lag is not None]
    tokens = Counter(int(lag) for lag in lags.lag_BT[lags.mask_BT].tolist())
    n_tok = tokens.total()
    return LagMetrics(
        oldest=tuple(oldest),
        max_oldest=max(known, default=None),
        mean_oldest=sum(known) / len(known) if known else None,
        mean_token_lag=sum(lag * n for lag, n in tokens.items()) / n_tok if n_tok else None,
        histogram=dict(sorted(tokens.items())),
        n_tok=n_tok,
    )

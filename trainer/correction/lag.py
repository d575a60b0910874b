"""Lag rules: what happens to tokens, samples and groups that are too old. Lag is managed by a named rule, and counted.

The rule ``error`` of a run's configuration is `refuse`; all others return a correction.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from envsdk.errors import UsageError
from trainer.correction.result import Correction, corrected
from trainer.correction.versions import TokenLags


def lag_mask(lags: TokenLags, *, max_lag: int) -> Correction:
    """Keep the token iff its lag <= max_lag; a row that loses all its tokens has expired."""
    return _kept(lags, lags.lag_BT <= max_lag)


def lag_drop_sample(lags: TokenLags, *, max_lag: int) -> Correction:
    """Keep the row iff its oldest trainable token has lag <= max_lag."""
    return _kept(lags, _rows_within(lags, max_lag).unsqueeze(-1))


def lag_drop_group(lags: TokenLags, groups: Sequence[Hashable], *, max_lag: int) -> Correction:
    """Keep the row iff all rows of its group are within max_lag.

    Args:
        lags: of B rows.
        groups: [B] group id.
        max_lag: largest lag kept.
    """
    within = _rows_within(lags, max_lag).tolist()
    stale = {group for group, fine in zip(groups, within, strict=True) if not fine}
    keep_B = torch.tensor([group not in stale for group in groups], dtype=torch.bool)
    return _kept(lags, keep_B.unsqueeze(-1))


def lag_weight(lags: TokenLags, *, gamma: float, max_lag: int | None) -> Correction:
    """Weight gamma^lag, 0 beyond max_lag (`None` for no bound)."""
    keep_BT = lags.mask_BT if max_lag is None else lags.lag_BT <= max_lag
    weight_BT = torch.pow(torch.tensor(gamma, dtype=torch.float64), lags.lag_BT.clamp(min=0))
    return corrected(weight_BT, keep_BT, lags.mask_BT)


def refuse(lags: TokenLags, *, max_lag: int) -> None:
    """Raise where any trainable token is older than ``max_lag``: for runs that must be on-policy.

    Raises:
        UsageError: code ``lag_above_bound``.
    """
    worst = max((lag for lag in lags.oldest_B if lag is not None), default=0)
    if worst > max_lag:
        raise UsageError(
            f"a token is {worst} versions old and the bound is {max_lag}",
            code="lag_above_bound",
            hint="raise max_lag, or choose a lag rule that masks, drops or weights",
        )


def _rows_within(lags: TokenLags, max_lag: int) -> Tensor:
    return torch.tensor([oldest is None or oldest <= max_lag for oldest in lags.oldest_B], dtype=torch.bool)


def _kept(lags: TokenLags, keep: Tensor) -> Correction:
    return corrected(torch.ones(lags.mask_BT.shape, dtype=torch.float64), keep, lags.mask_BT)

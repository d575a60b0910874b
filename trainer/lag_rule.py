"""The run's lag rule applied to a batch's episodes: every trained token gets its lag and its factor.

Promises: what the rule rejects keeps its place with a factor of 0, so that denominators stay; nothing is reordered.
Which rule there is, and its bounds, is `trainer.batch_config`; what each does to tokens, `trainer.correction.lag`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from envsdk.episode.record import EpisodeRecord, TokenTrace
from trainer.batch_config import BatchConfig
from trainer.correction import lag
from trainer.correction.lag_metrics import lag_metrics
from trainer.correction.result import Correction
from trainer.correction.versions import TokenLags, token_lags
from trainer.sample import TrainSample

Draft = tuple[EpisodeRecord, TokenTrace, float]


@dataclass(frozen=True, slots=True)
class Lagged:
    """Samples of each group, and how old their tokens are; a group keeps samples whose tokens were all rejected."""

    groups: tuple[tuple[TrainSample, ...], ...]
    histogram: dict[int, int]
    oldest: int | None
    frac_masked: float


def with_lag(drafts: Sequence[Sequence[Draft]], *, trainer_version: int, config: BatchConfig) -> Lagged:
    """Samples of ``drafts``: (record, tokens, advantage) of each valid member, group by group.

    Raises:
        ValueError: a trained token's version is unknown, ambiguous or above the trainer's.
        UsageError: ``lag_above_bound``.
    """
    flat = [draft for group in drafts for draft in group]
    if not flat:
        return Lagged((), {}, None, 0.0)
    width = max(len(tokens.ids) for _, tokens, _ in flat)
    rows = [[*tokens.loss_mask, *[0] * (width - len(tokens.ids))] for _, tokens, _ in flat]
    mask_BN = torch.tensor(rows, dtype=torch.bool)
    lags = token_lags([tokens.versions for _, tokens, _ in flat], mask_BN, trainer_version=trainer_version)
    correction = _apply(lags, [number for number, group in enumerate(drafts) for _ in group], config)
    samples = iter(_samples(flat, lags.lag_BT, correction.weight_BT))
    metrics = lag_metrics(lags)
    return Lagged(
        groups=tuple(tuple(next(samples) for _ in group) for group in drafts if group),
        histogram=metrics.histogram,
        oldest=metrics.max_oldest,
        frac_masked=correction.frac_masked,
    )


def _apply(lags: TokenLags, groups: Sequence[int], config: BatchConfig) -> Correction:
    if config.lag_rule == "weight":
        return lag.lag_weight(lags, gamma=config.lag_gamma, max_lag=config.max_lag)
    if config.max_lag is None:
        return lag.lag_weight(lags, gamma=1.0, max_lag=None)
    match config.lag_rule:
        case "mask":
            return lag.lag_mask(lags, max_lag=config.max_lag)
        case "drop_sample":
            return lag.lag_drop_sample(lags, max_lag=config.max_lag)
        case "drop_group":
            return lag.lag_drop_group(lags, groups, max_lag=config.max_lag)
        case "error":
            lag.refuse(lags, max_lag=config.max_lag)
            return lag.lag_weight(lags, gamma=1.0, max_lag=None)


def _samples(flat: Sequence[Draft], lag_BN: Tensor, weight_BN: Tensor) -> list[TrainSample]:
    samples = []
    for row, (record, tokens, advantage) in enumerate(flat):
        trained = tuple(t for t, generated in enumerate(tokens.loss_mask) if generated)
        lags, weights = lag_BN[row].tolist(), weight_BN[row].tolist()
        samples.append(
            TrainSample(
                episode_id=record.episode_id,
                group_id=record.group_id,
                ids=tokens.ids,
                trained=trained,
                engine_logprobs=tuple(tokens.logprobs[t] for t in trained),
                lags=tuple(int(lags[t]) for t in trained),
                lag_weights=tuple(float(weights[t]) for t in trained),
                advantage=advantage,
            )
        )
    return samples

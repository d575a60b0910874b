"""From complete groups to a batch the learner can train on: advantages, validity, lag, denominators.

Promises: an episode that is out of the gradient or out of the baseline changes nothing (law 3); a group with fewer than
two valid members, or without variance, trains nothing and is reported; tokens that the lag rule rejects keep their
place in the denominators. What was kept, dropped and excluded is in the report, beside what it did to the batch (law
11). Nothing here needs the model: it runs off the critical path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from envsdk.episode.record import EpisodeRecord, TokenTrace
from trainer.advantage import group_advantages
from trainer.batch_config import BatchConfig
from trainer.lag_rule import with_lag
from trainer.sample import TrainSample


@dataclass(frozen=True, slots=True)
class GroupFate:
    """What became of one given group; ``reason`` is why it trains nothing, `None` where it trains."""

    group_id: str
    slug: str
    n_given: int
    n_valid: int
    mean_reward: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What the batch is made of.

    Attributes:
        fates: one per given group.
        episodes, scored: given, and with a reward; ``coverage`` is their ratio.
        mean_reward: over scored episodes, `None` without any.
        excluded: cause -> episodes that are out of gradient and baseline.
        lag_histogram: versions behind -> trainable tokens, before the lag rule.
        oldest_lag: of any trainable token, `None` for an empty batch.
        frac_lag_masked: trainable tokens that the lag rule rejected, of all.
        mean_tokens: trainable tokens per sample.
    """

    fates: tuple[GroupFate, ...]
    episodes: int
    scored: int
    mean_reward: float | None
    excluded: dict[str, int]
    lag_histogram: dict[int, int]
    oldest_lag: int | None
    frac_lag_masked: float
    mean_tokens: float

    @property
    def coverage(self) -> float:
        """Scored episodes over all, 0 for none."""
        return self.scored / self.episodes if self.episodes else 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of one optimizer step.

    Attributes:
        groups: the samples of each group that trains, siblings adjacent.
        n_tok, n_seq: global denominators: trainable tokens, and samples that have any, before corrections.
        trainer_version: version of the weights that are about to be updated.
        report: see `BatchReport`.
    """

    groups: tuple[tuple[TrainSample, ...], ...]
    n_tok: int
    n_seq: int
    trainer_version: int
    report: BatchReport


def build_batch(
    groups: Sequence[Sequence[EpisodeRecord]],
    *,
    trainer_version: int,
    config: BatchConfig = BatchConfig(),  # noqa: B008 - frozen
) -> Batch:
    """The batch of ``groups``, each the records of one group's members.

    Raises:
        ValueError: a valid episode's reward is missing, its tokens do not fit its spans, or a version is above the
            trainer's.
        UsageError: ``lag_above_bound`` under the rule ``error``.
    """
    records = [record for group in groups for record in group]
    ids = [number for number, group in enumerate(groups) for _ in group]
    valid = [is_valid(record) for record in records]
    advantages = group_advantages([r.outcome.reward for r in records], ids, valid, estimator=config.estimator)
    drafts: list[list[tuple[EpisodeRecord, TokenTrace, float]]] = []
    fates: list[GroupFate] = []
    at = 0
    for number, group in enumerate(groups):
        stats = advantages.groups[number] if group else None
        members = [(r, advantages.values[at + i]) for i, r in enumerate(group) if valid[at + i]]
        at += len(group)
        trains = stats is not None and not stats.no_signal
        if trains:
            drafts.append([(r, r.tokens, a) for r, a in members if r.tokens is not None and any(r.tokens.loss_mask)])
        fates.append(
            GroupFate(
                group_id=group[0].group_id if group else "",
                slug=group[0].slug if group else "",
                n_given=len(group),
                n_valid=len(members),
                mean_reward=stats.mean if stats else None,
                reason=(stats.reason if stats else "empty"),
            )
        )
    lagged = with_lag(drafts, trainer_version=trainer_version, config=config)
    samples = [sample for group in lagged.groups for sample in group]
    n_tok = sum(len(sample.trained) for sample in samples)
    rewards = [r.outcome.reward for r in records if r.outcome.reward is not None]
    report = BatchReport(
        fates=tuple(fates),
        episodes=len(records),
        scored=len(rewards),
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
        excluded=dict(Counter(_why_excluded(r) for r, v in zip(records, valid, strict=True) if not v)),
        lag_histogram=lagged.histogram,
        oldest_lag=lagged.oldest,
        frac_lag_masked=lagged.frac_masked,
        mean_tokens=n_tok / len(samples) if samples else 0.0,
    )
    return Batch(lagged.groups, n_tok, len(samples), trainer_version, report)


def is_valid(record: EpisodeRecord) -> bool:
    """Whether an episode may touch gradient and baseline: its outcome allows both, and its tokens are at hand."""
    tokens = record.tokens
    at_hand = tokens is not None and tokens.complete
    return record.outcome.in_gradient and record.outcome.in_baseline and at_hand


def _why_excluded(record: EpisodeRecord) -> str:
    outcome = record.outcome
    return "tokens_not_at_hand" if outcome.in_gradient and outcome.in_baseline else outcome.cause

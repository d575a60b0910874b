"""What one step of a run looked like: the row of ``metrics.jsonl`` and the line on the console.

Legend: shares and means are over episodes that are in the gradient unless a name says otherwise; nothing that was not
scored enters a mean, and coverage stands beside it (law 1). Lag is counted per trained token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from envsdk.episode.record import EpisodeRecord
from trainer.activity import Totals
from trainer.clock import BatchTiming, percentile
from trainer.dispatch import DispatchCounts
from trainer.group import CompleteGroup
from trainer.weights import Publication


def lag_histogram(records: Sequence[EpisodeRecord], *, version: int) -> dict[int, int]:
    """Trained tokens by lag: learner's version minus the token's."""
    lags: Counter[int] = Counter()
    for record in records:
        if record.outcome.in_gradient and record.tokens is not None:
            for span in record.tokens.versions:
                lags[version - span.version] += span.end - span.start
    return dict(sorted(lags.items()))


def whole_lag_histogram(rows: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Trained tokens by lag over the steps whose rows of metrics these are."""
    lags: Counter[int] = Counter()
    for row in rows:
        lags.update({int(lag): tokens for lag, tokens in row["lag/tokens"].items()})
    return dict(sorted(lags.items()))


def step_row(
    *,
    step: int,
    version: int,
    groups: Sequence[CompleteGroup],
    launched: Sequence[EpisodeRecord],
    learner: Mapping[str, float],
    timing: BatchTiming,
    activity: Totals,
    publication: Publication | None,
    counts: DispatchCounts,
) -> dict[str, Any]:
    """The metrics of a step.

    Args:
        step: from 1.
        version: the learner's weight version while it trained this batch.
        groups: the batch.
        launched: every episode that ended since the last step, kept or not.
        learner: the learner's own metrics.
        timing: of this batch.
        activity: totals of this step alone.
        publication: of the weights this step made.
        counts: of the whole run.
    """
    kept = [record for group in groups for record in group.episodes]
    lags = lag_histogram(kept, version=version)
    row: dict[str, Any] = {
        "step": step,
        "version": version,
        **_rewards("batch", kept),
        **_rewards("launched", launched),
        "lag/tokens": {str(lag): tokens for lag, tokens in lags.items()},
        "lag/mean": _mean([lag for lag, tokens in lags.items() for _ in range(tokens)]),
        "lag/oldest": max(lags, default=0),
        "groups/refilled": sum(group.refilled for group in groups),
        "groups/flawed": sum(group.flawed for group in groups),
        "run/groups_dispatched": counts.dispatched,
        "run/groups_rejected": dict(counts.rejected),
        "run/refills": counts.refills,
        "time/t2tb_s": timing.t2tb_s,
        **{f"time/t2tb_{phase}_s": seconds for phase, seconds in timing.attribution.items()},
        **{f"time/straggler_{phase}_s": seconds for phase, seconds in timing.straggler.items()},
        "time/learner_wait_s": timing.learner_wait_s,
        "time/pool_wait_s": timing.pool_wait_s,
        "time/batch_age_s": timing.age_s,
        "time/step_s": activity.wall_s,
        "time/engine_busy_s": activity.engine_busy_s,
        "time/engine_idle_env_s": activity.engine_idle_env_s,
        "time/learner_busy_s": activity.learner_busy_s,
        "time/overlap_s": activity.overlap_s,
        "engine/prompt_tokens": activity.prompt_tokens,
        "engine/prefix_hit_tokens": activity.prefix_hit_tokens,
        "engine/generated_tokens": activity.generated_tokens,
        **{f"learner/{name}": value for name, value in learner.items()},
    }
    if publication is not None:
        row |= {
            "sync/version": publication.version,
            "sync/mismatch": publication.mismatch,
            **{f"sync/mismatch_{name}": value for name, value in publication.worst.divergence.items()},
            "sync/write_s": publication.write_s,
            "sync/paused_s": publication.paused_s,
            "sync/probe_s": publication.probe_s,
        }
    return row


def console_line(row: Mapping[str, Any], *, steps: int) -> str:
    """The one line a step gets on the console."""
    reward = row["batch/reward_mean"]
    parts = (
        f"step {row['step']:>3}/{steps}",
        f"{row['time/step_s']:5.1f} s",
        f"reward {'  -  ' if reward is None else f'{reward:.3f}'}",
        f"launched {_share(row['launched/pass_rate'])} pass",
        f"lag {row['lag/mean'] or 0:.2f} (max {row['lag/oldest']})",
        f"batch {row['time/t2tb_s']:.1f} s",
        f"overlap {_share(_ratio(row['time/overlap_s'], row['time/learner_busy_s']))}",
        f"mismatch {row.get('sync/mismatch', 0.0):.3f}",
        f"{sum(row['lag/tokens'].values())} tokens",
    )
    return "  ".join(parts)


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """First and last mean reward of launched episodes, and percentiles of time to trainable batch, of a run's metrics.

    Launched, not trained: groups that carry no signal are not trained, so the batch's own mean hides how good the model
    is.
    """
    rewards = [row["launched/reward_mean"] for row in rows if row["launched/reward_mean"] is not None]
    seconds = [row["time/t2tb_s"] for row in rows]
    return {
        "steps": len(rows),
        "reward_first": rewards[0] if rewards else None,
        "reward_last": rewards[-1] if rewards else None,
        "batch_s": {"p50": percentile(seconds, 0.5), "p95": percentile(seconds, 0.95)},
    }


def _rewards(name: str, records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    graded = [record for record in records if record.outcome.graded and record.outcome.reward is not None]
    passed = [record.outcome.outcome_class == "model_success" for record in graded]
    return {
        f"{name}/episodes": len(records),
        f"{name}/coverage": _ratio(len(graded), len(records)),
        f"{name}/reward_mean": _mean([record.outcome.reward for record in graded if record.outcome.reward is not None]),
        f"{name}/pass_rate": _mean(passed),
        f"{name}/seconds_mean": _mean([record.times.total_s for record in records if record.times.total_s is not None]),
        f"{name}/families": dict(Counter(record.family for record in records)),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _share(value: float | None) -> str:
    return " - " if value is None else f"{100 * value:.0f}%"

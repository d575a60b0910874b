"""An evaluation as the command line shows it: the keys of ``--json``, and the lines for a reader."""

from __future__ import annotations

from collections import Counter
from typing import Any

from trainer.evaluate import Evaluation
from trainer.interval import RateInterval


def result_of(name: str, found: Evaluation) -> dict[str, Any]:
    """What was measured on the set ``name``."""
    return {
        "set": name,
        **_rate(found.overall),
        "coverage": found.coverage,
        "families": {family: _rate(interval) for family, interval in found.families.items()},
    }


def _rate(interval: RateInterval) -> dict[str, Any]:
    return {
        "pass_rate": interval.rate,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "tasks": interval.clusters,
    }


def text_of(name: str, found: Evaluation) -> str:
    """A line for all tasks and one for each family, with intervals, and what was not scored."""
    lines = [f"{name}: {_shown(found.overall)}, coverage {100 * found.coverage:.0f} %"]
    lines += [f"  {family}: {_shown(interval)}" for family, interval in found.families.items()]
    if causes := lost(found):
        lines.append(f"  not scored: {causes}")
    return "\n".join(lines)


def lost(found: Evaluation) -> str:
    """What ended the episodes that could not be scored, the most frequent first."""
    causes = Counter(record.outcome.cause for record in found.records if not record.outcome.graded)
    return ", ".join(f"{count} {cause}" for cause, count in causes.most_common())


def _shown(interval: RateInterval) -> str:
    if interval.rate is None or interval.low is None or interval.high is None:
        return "nothing was scored"
    bounds = f"{100 * interval.low:.0f}-{100 * interval.high:.0f} %"
    return f"{100 * interval.rate:.1f} % (95 % interval {bounds}, {interval.n} episodes of {interval.clusters} tasks)"

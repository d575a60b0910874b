"""What a report shows, read from a run's directory; nothing here draws.

Reads a run that is going on, was killed, or has not trained yet, as far as it has come, and changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsdk.episode.conversation import opening
from envsdk.episode.record import EpisodeRecord
from envsdk.errors import EnvsdkError, StoreError
from envsdk.files.jsonl import read_rows
from envsdk.outcome.table import outcome_table
from envsdk.spec.load import load_task
from trainer.clock import PHASES
from trainer.evaluate import Evaluation, summarise
from trainer.ledger import ENDS, Ledger, stored_records
from trainer.run_dir import METRICS, TASKS, TIMELINE, RunDir
from trainer.step_report import whole_lag_histogram

_PER_KIND = 3
_NUMBER = (int, float)
_STEP: Mapping[str, type | tuple[type, ...]] = {
    "step": int,
    "lag/tokens": dict,
    "batch/families": dict,
    "launched/families": dict,
    **{f"time/{name}_s": _NUMBER for name in ("t2tb", "learner_busy", "overlap")},
    **{f"time/t2tb_{phase}_s": _NUMBER for phase in PHASES},
    **{f"engine/{name}_tokens": int for name in ("prompt", "prefix_hit")},
}
"""What every row of metrics holds."""
_BAR: Mapping[str, type | tuple[type, ...]] = {"who": str, "what": str, "start": _NUMBER, "end": _NUMBER}


@dataclass(frozen=True, slots=True)
class Shown:
    """An episode to read, why it was chosen, and the messages before its first reply."""

    why: str
    record: EpisodeRecord
    prompt: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ReportData:
    """One run.

    Attributes:
        facts: of ``run.json``.
        steps: rows of metrics.
        bars: rows of the timeline.
        lags: trained tokens by lag, over the run.
        outcomes, causes: ended episodes; a cause with the side that holds the fault and what to do.
        evals: evaluations by name.
        episodes: some to read.
    """

    facts: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]
    bars: Sequence[Mapping[str, Any]]
    lags: Mapping[int, int]
    outcomes: Mapping[str, int]
    causes: Sequence[Mapping[str, Any]]
    evals: Mapping[str, Evaluation]
    episodes: Sequence[Shown]


def read(path: Path, *, evals: Mapping[str, Path] | None = None) -> ReportData:
    """Read a run, finished or not.

    Args:
        path: the run's directory.
        evals: files that ``envsdk eval --out`` wrote, by the name to show them under.

    Raises:
        UsageError: ``no_run``.
        StoreError: a file of the run or of an evaluation is damaged or missing.
    """
    run = RunDir.open(path)
    _require_files(path, run.facts)
    steps = _rows(path / METRICS, _STEP)
    ledger = Ledger(path)
    return ReportData(
        facts=run.facts,
        steps=steps,
        bars=_rows(path / TIMELINE, _BAR),
        lags=whole_lag_histogram(steps),
        outcomes=dict(ledger.outcomes),
        causes=_causes(ledger),
        evals={name: _evaluation(file) for name, file in (evals or {}).items()},
        episodes=_episodes(ledger, path),
    )


def _require_files(path: Path, facts: Mapping[str, Any]) -> None:
    """A run that has come to a checkpoint has written these; before that, any of them may not be there yet."""
    missing = [name for name in (METRICS, ENDS) if not (path / name).is_file()]
    if missing and facts.get("last_checkpoint"):
        raise StoreError(
            f"the run came to step {facts['last_checkpoint']}, and {missing[0]} is gone",
            code="corrupt_run",
            hint="put the file back; a report without it would show a run that never was",
            where=str(path / missing[0]),
        )


def _rows(path: Path, needed: Mapping[str, type | tuple[type, ...]]) -> list[dict[str, Any]]:
    rows = read_rows(path).rows if path.exists() else []
    for number, row in enumerate(rows, start=1):
        for key, kind in needed.items():
            if not isinstance(row.get(key), kind):
                raise StoreError(
                    f"row {number} has no {key} as a run writes it: {row.get(key)!r}",
                    code="corrupt_row",
                    hint="put the file back as it was written, or remove the row",
                    where=str(path),
                )
    return rows


def _causes(ledger: Ledger) -> list[dict[str, Any]]:
    known = outcome_table().causes
    total = sum(ledger.causes.values())
    return [
        {
            "cause": cause,
            "side": known[cause].side if cause in known else "undecided",
            "sentence": known[cause].sentence if cause in known else "",
            "action": known[cause].action if cause in known else "",
            "count": count,
            "share": count / total,
        }
        for cause, count in ledger.causes.most_common()
    ]


def _evaluation(path: Path) -> Evaluation:
    records = list(stored_records(path)) if path.is_file() else []
    if not records:
        raise StoreError("no episodes of an evaluation here", code="no_episodes", where=str(path))
    return summarise(records)


def _episodes(ledger: Ledger, path: Path) -> list[Shown]:
    """A few of each kind: early and late ones that passed or failed, and everything the machinery broke first."""
    chosen: dict[str, list[EpisodeRecord]] = {}
    records = list(ledger.records())
    half = len(records) // 2
    for number, record in enumerate(records):
        when = "early" if number < half else "late"
        kind = record.outcome.outcome_class
        why = f"{when} {kind.replace('_', ' ')}" if kind.startswith("model") else kind.replace("_", " ")
        if record.turns or not kind.startswith("model"):
            chosen.setdefault(why, []).append(record)
    shown = []
    for why in sorted(chosen):
        some = chosen[why]
        shown += [
            Shown(why, record, _prompt(record, path)) for record in some[:: max(1, len(some) // _PER_KIND)][:_PER_KIND]
        ]
    return shown


def _prompt(record: EpisodeRecord, path: Path) -> tuple[tuple[str, str], ...]:
    """The messages before the first reply; empty where the task's files are gone."""
    for folder in (path / TASKS).glob(f"{record.task_digest[:16]}-*"):
        try:
            return tuple((message.role, message.content) for message in opening(load_task(folder)))
        except EnvsdkError:
            return ()
    return ()

"""Recorded trials: what a planning run is fed, read from a CSV of one row a trial.

Columns: ``task``; ``total_s`` or ``duration_s``; optionally ``passed`` (0 or 1) and phases in seconds, ``setup_s``,
``agent_s`` and ``verify_s`` or ``test_s``. Other columns are ignored. A row without a duration says nothing about time:
it is left out and counted.
"""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from pathlib import Path

from envsdk.errors import UsageError

PHASES = ("setup", "agent", "verify")
_COLUMNS = {"setup": ("setup_s",), "agent": ("agent_s",), "verify": ("verify_s", "test_s")}


@dataclass(frozen=True, slots=True)
class Trial:
    """One recorded attempt. ``phases_s``: seconds of each of `PHASES`, in order, at most ``duration_s`` together."""

    task: str
    duration_s: float
    passed: bool
    phases_s: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Recording:
    """All trials of a file by task, and how many of its rows had no duration."""

    by_task: dict[str, tuple[Trial, ...]]
    untimed: int


def invented_trials(*, tasks: int = 40, trials: int = 8, seed: int = 0) -> Recording:
    """A long tail to try things on where nothing was recorded: log-normal, hard tasks longer."""
    draw = random.Random(seed)  # noqa: S311 - reproducible on purpose
    by_task = {}
    for number in range(tasks):
        typical_s, ease = draw.lognormvariate(4.5, 0.8), draw.random()
        rows = []
        for _ in range(trials):
            agent_s = typical_s * (1.5 - ease) * draw.lognormvariate(0, 0.5)
            rows.append(Trial(f"task-{number}", agent_s + 12.0, draw.random() < ease, (2.0, agent_s, 10.0)))
        by_task[f"task-{number}"] = tuple(rows)
    return Recording(by_task, 0)


def read_trials(path: Path) -> Recording:
    """Read a CSV of trials.

    Raises:
        UsageError: ``no_trace``: no such file; ``invalid_trace``: a column is missing, a number is none, or no row is
            timed.
    """
    if not path.is_file():
        hint = "give a CSV of recorded trials, or leave --trace out for invented ones"
        raise UsageError("no such file of durations", code="no_trace", where=str(path), hint=hint)
    by_task: dict[str, list[Trial]] = {}
    untimed = 0
    with path.open(newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        columns = set(rows.fieldnames or ())
        duration = next((name for name in ("total_s", "duration_s") if name in columns), None)
        if "task" not in columns or duration is None:
            raise UsageError(
                f"the columns are {sorted(columns)}",
                code="invalid_trace",
                hint="a trace has the columns task and total_s (or duration_s)",
                where=str(path),
            )
        for number, row in enumerate(rows, start=2):
            total = _seconds(row.get(duration), path, number)
            if total is None:
                untimed += 1
                continue
            phases = [_phase(row, name, path, number) for name in PHASES]
            known = sum(phases)
            scale = min(1.0, total / known) if known else 1.0
            setup, agent, verify = (seconds * scale for seconds in phases)
            trial = Trial(row["task"], total, row.get("passed") in {"1", "True", "true"}, (setup, agent, verify))
            by_task.setdefault(trial.task, []).append(trial)
    if not by_task:
        raise UsageError("no row has a duration", code="invalid_trace", where=str(path))
    return Recording({task: tuple(trials) for task, trials in sorted(by_task.items())}, untimed)


def _phase(row: dict[str, str], name: str, path: Path, number: int) -> float:
    for column in _COLUMNS[name]:
        seconds = _seconds(row.get(column), path, number)
        if seconds is not None:
            return seconds
    return 0.0


def _seconds(text: str | None, path: Path, number: int) -> float | None:
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise UsageError(f"line {number}: {text!r} is not a number of seconds", code="invalid_trace", where=str(path))
    return seconds

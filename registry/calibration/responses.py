"""A table of responses as a file: CSV with the columns model, task, trials, passes; further columns are ignored."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from envsdk.errors import UsageError
from registry.calibration.rasch import Responses

COLUMNS = ("model", "task", "trials", "passes")


@dataclass(frozen=True, slots=True)
class ResponseTable:
    """Names of the rows and columns of `Responses`, in the order of the file."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    responses: Responses


def read_responses(path: Path) -> ResponseTable:
    """Read a table; several rows of one model and task add up.

    Raises:
        UsageError: the file cannot be read, a column is missing, or a row holds no counts (``bad_responses``, with the
            line).
    """
    models: dict[str, int] = {}
    tasks: dict[str, int] = {}
    cells: list[tuple[int, int, int, int]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise UsageError(
                    f"there is no column {missing[0]!r}",
                    code="bad_responses",
                    where=str(path),
                    hint=f"the table needs the columns {', '.join(COLUMNS)}",
                )
            for row in reader:
                trials, passes = _counts(row, path, reader.line_num)
                model = models.setdefault(row["model"], len(models))
                cells.append((model, tasks.setdefault(row["task"], len(tasks)), trials, passes))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read the table: {error}", code="bad_responses", where=str(path)) from error
    if not cells:
        raise UsageError("the table has no rows", code="bad_responses", where=str(path))
    trials_table = np.zeros((len(models), len(tasks)))
    passes_table = np.zeros((len(models), len(tasks)))
    for model, task, trials, passes in cells:
        trials_table[model, task] += trials
        passes_table[model, task] += passes
    return ResponseTable(tuple(models), tuple(tasks), Responses(passes_table, trials_table))


def _counts(row: dict[str, str], path: Path, line: int) -> tuple[int, int]:
    try:
        trials, passes = int(row["trials"]), int(row["passes"])
        possible = bool(0 <= passes <= trials and row["model"] and row["task"])
    except (TypeError, ValueError):
        possible, trials, passes = False, 0, 0
    if not possible:
        raise UsageError(
            f"line {line} holds no whole counts with passes from 0 to trials",
            code="bad_responses",
            where=f"{path}:{line}",
            hint="leave out what was not tried",
        )
    return trials, passes

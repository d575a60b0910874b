"""Reports of content that was checked already: kept by package digest, found again while nothing changed.

A report is kept for one sandbox back end and one state of the checks' own source. One with an undecided check is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from envsdk.checks.report import CheckReport
from envsdk.files.replace import write_whole
from envsdk.home import checks_dir
from envsdk.spec.model import Task


def find(task: Task, checks: Sequence[str], sandbox: str) -> CheckReport | None:
    """The kept report of exactly these checks, or `None`."""
    try:
        report = CheckReport.model_validate_json(_place(task, checks, sandbox).read_bytes())
    except (OSError, ValidationError):
        return None
    return report if [result.check for result in report.checks] == list(checks) else None


def keep(task: Task, report: CheckReport) -> None:
    """Keep a report whose every check was decided. A folder that cannot be written to is no fault: nothing is kept."""
    if any(result.outcome == "error" for result in report.checks):
        return
    place = _place(task, [result.check for result in report.checks], report.sandbox)
    try:
        write_whole(place, report.model_dump_json())
    except OSError:
        return


def _place(task: Task, checks: Sequence[str], sandbox: str) -> Path:
    asked = hashlib.sha256(" ".join(checks).encode()).hexdigest()[:8]
    return checks_dir() / _source_digest() / f"{task.digests.package}-{sandbox or 'none'}-{asked}.json"


@cache
def _source_digest() -> str:
    """A name for what asks and what verifies, so that a changed check is asked again."""
    package = Path(__file__).parents[1]
    sources = sorted(path for part in ("checks", "verifying", "graders") for path in (package / part).rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]

"""Reports as text for people: marks, reasons, evidence, fix, and the line that asks again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from envsdk.checks.report import CheckReport, CheckResult

MARKS = {"pass": "✔", "fail": "✘", "error": "?", "skipped": "·", "incomplete": "?"}
_EVIDENCE_LINES = 14


def rerun_line(where: str, check: str) -> str:
    """The command that asks one check of one task again."""
    return f"envsdk check {shlex.quote(where)} --checks {check} --fresh"


def summary_line(report: CheckReport) -> str:
    """One task in one line."""
    counts = {
        name: sum(result.outcome == name for result in report.checks) for name in ("pass", "fail", "error", "skipped")
    }
    words = {"pass": "passed", "fail": "failed", "error": "undecided", "skipped": "skipped"}
    said = ", ".join(f"{count} {words[name]}" for name, count in counts.items() if count)
    return f"{MARKS[report.verdict]} {report.slug}  {report.verdict}: {said}"


def lines(report: CheckReport, where: str, *, every_check: bool) -> Iterator[str]:
    """A task's block: its line, then a row for each check that did not pass, or for each where ``every_check``."""
    yield summary_line(report)
    for result in report.checks:
        if every_check or result.outcome in {"fail", "error"}:
            yield f"    {MARKS[result.outcome]} {result.check:<14} {result.why}"
        if result.outcome in {"fail", "error"}:
            yield from (f"        {line}" for line in details(result, where))


def details(result: CheckResult, where: str) -> Iterator[str]:
    """Evidence, fix and rerun line of a result that did not pass."""
    yield from evidence_lines(result)
    if result.fix:
        yield f"fix: {result.fix}"
    yield f"rerun: {rerun_line(where, result.check)}"


def evidence_lines(result: CheckResult, *, limit: int = _EVIDENCE_LINES) -> list[str]:
    """Evidence as at most ``limit`` lines."""
    found: list[str] = []
    for key, value in result.evidence.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found += [f"{key}: {_row(row)}" for row in value]
            found += [f"    {line}" for line in str(value[0].get("diff", "")).splitlines()]
        elif isinstance(value, str) and "\n" in value:
            found += [f"{key}: {line}" for line in value.splitlines()]
        elif value != []:
            found.append(f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    more = [f"... {len(found) - limit} lines more with --json"] if len(found) > limit else []
    return found[:limit] + more


def _row(row: dict[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in row.items() if key != "diff" and value not in {"", 0})

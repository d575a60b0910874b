"""Reports as text for people: marks, reasons, evidence, fix, and the line that asks again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from envsdk.checks.evidence import Part, parts
from envsdk.checks.report import CheckReport, CheckResult, Verdict

MARKS = {"pass": "✔", "fail": "✘", "error": "?", "skipped": "·", "incomplete": "○"}
_EVIDENCE_LINES = 16
_LEAST_LINES = 4


def rerun_line(where: str, check: str) -> str:
    """The command that asks one check of one task again."""
    return f"envsdk check {shlex.quote(where)} --checks {check} --fresh"


def standing(verdict: Verdict, results: Iterable[CheckResult]) -> tuple[Verdict, str]:
    """The verdict as people are told it, and why it is incomplete.

    What passed as far as it was asked, but has a question that could not be, is no pass: the registry keeps its task a
    draft (``CheckReport.complete``). A question that does not apply, or that nobody asked for, lacks nothing.
    """
    lacking = (result for result in results if not result.evidence.get("assessed", True))
    reasons = dict.fromkeys(result.why.removeprefix("the task has ") for result in lacking)
    if verdict in {"fail", "error"} or (verdict == "pass" and not reasons):
        return verdict, ""
    return "incomplete", ", ".join(reasons)


def summary_line(report: CheckReport) -> str:
    """One task in one line."""
    told, lacks = standing(report.verdict, report.checks)
    counts = {
        name: sum(result.outcome == name for result in report.checks) for name in ("pass", "fail", "error", "skipped")
    }
    words = {"pass": "passed", "fail": "failed", "error": "undecided", "skipped": "skipped"}
    said = ", ".join(f"{count} {words[name]}" for name, count in counts.items() if count)
    return f"{MARKS[told]} {report.slug}  {told}: {lacks}{'; ' if lacks else ''}{said}"


def lines(report: CheckReport, where: str, *, every_check: bool) -> Iterator[str]:
    """A task's block: its line, then a row for each check that did not pass, or for each where ``every_check``.

    What several checks could not decide for one reason, such as an image that does not build, is said once.
    """
    yield summary_line(report)
    for result in report.checks:
        alike = _undecided_for(result.why, report) if result.outcome == "error" else [result.check]
        if result.check != alike[0]:
            continue
        if every_check or result.outcome in {"fail", "error"}:
            yield f"    {MARKS[result.outcome]} {result.check:<14} {result.why}"
        if result.outcome in {"fail", "error"}:
            yield from (f"        {line}" for line in details(result, where))
        if len(alike) > 1:
            yield f"    ? for the same reason: {', '.join(alike[1:])}"


def _undecided_for(why: str, report: CheckReport) -> list[str]:
    return [result.check for result in report.checks if result.outcome == "error" and result.why == why]


def details(result: CheckResult, where: str) -> Iterator[str]:
    """Evidence, fix and rerun line of a result that did not pass."""
    yield from evidence_lines(result)
    if result.fix:
        yield f"fix: {result.fix}"
    yield f"rerun: {rerun_line(where, result.check)}"


def evidence_lines(result: CheckResult, *, limit: int = _EVIDENCE_LINES) -> list[str]:
    """Evidence as at most ``limit`` lines, and one that says how many there are more; each part gets its share."""
    found = list(parts(result.evidence))
    long = sum(part.kind != "fact" for part in found)
    share = max(_LEAST_LINES, (limit - (len(found) - long)) // max(1, long))
    shown: list[str] = []
    for part in found:
        shown += _lines_of(part, share)
    cut = shown[:limit]
    left = len(shown) - len(cut) + sum(max(0, len(part.lines) - share) for part in found if part.kind != "fact")
    return [*cut, f"... {left} lines more with --json"] if left else cut


def _lines_of(part: Part, share: int) -> Iterator[str]:
    if part.kind == "fact":
        yield f"{part.name}: {part.lines[0]}"
        return
    if part.kind == "rows" and len(part.lines) == 1:
        yield f"{part.name}: {part.lines[0]}"
        return
    if part.kind != "diff":
        yield f"{part.name}:"
    yield from (f"    {line}" for line in part.lines[:share])

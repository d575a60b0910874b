"""``envsdk conform``: run every case file under a folder with the judges that are installed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import BAD, failure, success
from envsdk.cli.options import JsonFlag, emit
from envsdk.cli.progress import counted, stderr_console
from envsdk.conformance.run import CaseResult, Tally, installed_judges, read_cases, run_cases
from envsdk.errors import FaultyError

_MARKS = {"passed": "✔", "failed": "✘", "skipped": "?"}


def conform(
    folder: Annotated[Path, typer.Argument(help="A folder of case files; sub-folders are searched.")],
    *,
    as_json: JsonFlag = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name the cases that passed too.")] = False,
) -> None:
    """Run case files with right answers and count. Exit 1 where a case failed; unknown kinds are skipped and named.

    Examples: envsdk conform tests/conformance/cases; envsdk conform cases --json
    """
    console = stderr_console()
    judges = installed_judges()
    total = sum(1 for _ in read_cases(folder))
    with counted(console, "cases", total) as done:

        def heard(result: CaseResult) -> None:
            done(result.case.kind)
            if result.outcome == "failed" or verbose:
                console.print(
                    f"{_MARKS[result.outcome]} {result.case.kind} {result.case.id} {result.why}", markup=False
                )

        tally = run_cases(folder, judges, report=heard)
    for line in _skipped(tally):
        console.print(line, markup=False)
    emit(_envelope(tally), as_json=as_json, text=tally.closing_line())
    if tally.count("failed"):
        raise typer.Exit(BAD)


def _skipped(tally: Tally) -> list[str]:
    """One line for each kind and reason of skipping, with how many cases it took."""
    counted = Counter((r.case.kind, r.why) for r in tally.results if r.outcome == "skipped")
    return [f"? skipped {count} of {kind}: {why}" for (kind, why), count in sorted(counted.items())]


def _envelope(tally: Tally) -> dict[str, object]:
    cases = [
        {"kind": r.case.kind, "id": r.case.id, "outcome": r.outcome, "why": r.why, "file": str(r.case.path)}
        for r in tally.results
    ]
    counts = {outcome: tally.count(outcome) for outcome in ("passed", "failed", "skipped")}
    failed = [r for r in tally.results if r.outcome == "failed"]
    errors = [
        FaultyError(
            r.why,
            code="case_failed",
            hint=f"alone: envsdk conform {r.case.path.parent} --verbose",
            where=f"{r.case.kind} {r.case.id}",
        )
        for r in failed
    ]
    return failure(*errors, **counts, cases=cases) if errors else success(**counts, cases=cases)

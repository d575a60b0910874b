"""``envsdk conform``: run every case file under a folder with the judges that are installed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from envsdk.cli.envelope import BAD, failure, render, success
from envsdk.cli.options import JsonFlag
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
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    judges = installed_judges()
    total = sum(1 for _ in read_cases(folder))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("cases", total=total)

        def heard(result: CaseResult) -> None:
            progress.update(bar, advance=1, description=result.case.kind)
            if result.outcome == "failed" or verbose:
                console.print(
                    f"{_MARKS[result.outcome]} {result.case.kind} {result.case.id} {result.why}", markup=False
                )

        tally = run_cases(folder, judges, report=heard)
    for line in _skipped(tally):
        console.print(line, markup=False)
    print(render(_envelope(tally)) if as_json else tally.closing_line())
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
    errors = [FaultyError(r.why, code="case_failed", where=f"{r.case.kind} {r.case.id}") for r in failed]
    return failure(*errors, **counts, cases=cases) if errors else success(**counts, cases=cases)

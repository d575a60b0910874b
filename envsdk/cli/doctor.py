"""``envsdk doctor``: what this machine has of what the project needs, and how to get the rest."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from envsdk.cli.envelope import MISSING, failure, success
from envsdk.cli.options import JsonFlag, emit
from envsdk.cli.progress import stderr_console
from envsdk.errors import PrerequisiteError
from envsdk.home import BASE_IMAGE
from envsdk.prerequisites import Finding, examine

_MARKS = {"ok": "[green]ok[/]", "missing": "[red]missing[/]", "absent": "[yellow]absent[/]"}


def doctor(
    *,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Also try to freeze and restore a process (CRIU, experimental).")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check sandboxes, packages, models, disk and registry, and print the fix for what is missing. Exit 0, or 3."""
    from envsdk.sandboxes.checkpoint import not_asked, probe

    console = stderr_console()
    with console.status("looking at this machine") as status:

        def begun(what: str) -> None:
            status.update(f"looking at {what}")
            if not console.is_terminal:  # where no status is drawn
                console.print(f"looking at {what}", markup=False)

        findings = examine(begun=begun)
        if checkpoints:
            begun("checkpoints")
        findings += (probe(BASE_IMAGE) if checkpoints else not_asked(),)
    missing = [finding for finding in findings if finding.state == "missing"]
    if as_json:
        errors = [PrerequisiteError(finding.detail, hint=finding.fix, where=finding.name) for finding in missing]
        emit(failure(*errors, checks=findings) if errors else success(checks=findings), as_json=True, text="")
    else:
        shown = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            shown.print(_lines(finding))
        console.print(
            "nothing essential is missing" if not missing else f"missing: {', '.join(f.name for f in missing)}"
        )
    if missing:
        raise typer.Exit(MISSING)


def _lines(finding: Finding) -> str:
    """One finding, its fix below it: whole, since what does not fit a column would be a path nobody can copy."""
    line = f"{_MARKS[finding.state]}{' ' * (8 - len(finding.state))}{finding.name:<19} {escape(finding.detail)}"
    return f"{line}\n{' ' * 28}fix: {escape(finding.fix)}" if finding.fix else line

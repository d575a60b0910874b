"""``envsdk report``: a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from envsdk.errors import UsageError
from envsdk.files.replace import write_whole


def report(
    run: Annotated[Path, typer.Argument(help="A run's directory.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write the page; report.html in the run by default.")
    ] = None,
    evals: Annotated[
        list[str] | None,
        typer.Option("--eval", help="An evaluation to compare, as NAME=EPISODES.jsonl; may be repeated."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a run's report: who waited for whom, curves, lag, mismatch, how episodes ended, and some to read.

    Examples: envsdk report runs/first; envsdk report runs/first --eval before=before.jsonl --eval after=after.jsonl
    """
    from trainer.report.data import read
    from trainer.report.page import render

    page = out or run / "report.html"
    write_whole(page, render(read(run, evals=dict(_named(item) for item in evals or [])), path=run))
    emit(success(page=str(page)), as_json=as_json, text=str(page))


def _named(item: str) -> tuple[str, Path]:
    name, equals, path = item.partition("=")
    if not equals or not name:
        raise UsageError(f"--eval {item!r} has no name", code="bad_setting", hint="--eval before=before.jsonl")
    return name, Path(path)

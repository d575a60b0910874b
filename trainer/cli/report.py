"""``envsdk report``: a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit


def report(
    run: Annotated[Path, typer.Argument(help="A run's directory.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write the page; report.html in the run by default.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a run's report: who waited for whom, curves, lag, mismatch, how episodes ended, and some to read.

    envsdk report runs/first
    """
    from trainer.report.data import read
    from trainer.report.page import render

    page = out or run / "report.html"
    text = render(read(run), path=run)
    partial = page.with_name(f".{page.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(page)
    emit(success(page=str(page)), as_json=as_json, text=str(page))

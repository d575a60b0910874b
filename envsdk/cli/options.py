"""Options that several commands share, spelled once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from envsdk.cli.envelope import render

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


def emit(envelope: dict[str, Any], *, as_json: bool, text: str) -> None:
    """Print a result on stdout: the envelope with ``--json``, else ``text`` (nothing where it is empty)."""
    if as_json:
        print(render(envelope))
    elif text:
        print(text)

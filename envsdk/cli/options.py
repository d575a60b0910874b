"""Options that several commands share, spelled once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from envsdk.cli.envelope import failure, render, success
from envsdk.errors import EnvsdkError


def _known(name: str | None) -> str | None:
    """The name, where such a back end is installed, and the setting's too. Raises `UsageError`."""
    from envsdk.sandboxes.choose import wanted

    wanted(name)
    return name


SandboxOption = Annotated[
    str | None, typer.Option(callback=_known, help="docker or bubblewrap; else the first that works.")
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


def emit(envelope: dict[str, Any], *, as_json: bool, text: str) -> None:
    """Print a result on stdout: the envelope with ``--json``, else ``text`` (nothing where it is empty)."""
    if as_json:
        print(render(envelope))
    elif text:
        print(text)


def finish(errors: Sequence[EnvsdkError], *, as_json: bool, text: str, **result: Any) -> None:
    """Print a result of which some may be bad, and end the command by what is wrong with it.

    With errors the envelope holds them beside the result, and the exit code is the lowest of theirs: what is known to
    be bad (1) goes before what could not be decided (4).
    """
    emit(failure(*errors, **result) if errors else success(**result), as_json=as_json, text=text)
    if errors:
        raise typer.Exit(min(error.exit_code for error in errors))

"""``envsdk registry import``: read an archive into an empty registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local


def import_(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A folder that `export` wrote.")],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Read an archive, all of it or nothing, and derive estimates and states from it.

    Example: envsdk registry import archive/ --registry postgresql+psycopg://me@host/registry
    """
    from registry.archive import import_archive

    with open_local(registry) as opened:
        result = import_archive(
            opened.database, opened.blobs, source, heard=lambda name, count: typer.echo(f"{name}: {count:,}", err=True)
        )
    envelope = success(outcomes=result.outcomes, standings=result.standings)
    emit(envelope, as_json=as_json, text=f"{result.outcomes} outcomes, {result.standings} standings")

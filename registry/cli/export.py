"""``envsdk registry export``: everything primary in plain files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local


def export(
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="A new or empty folder.")],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write tasks, outcomes, sets and reports as JSON lines and blobs; `import` reads them into any database.

    Example: envsdk registry export archive/
    """
    from registry.archive import export_archive

    with open_local(registry) as opened:
        rows = export_archive(
            opened.database, opened.blobs, dest, heard=lambda name, count: typer.echo(f"{name}: {count:,}", err=True)
        )
    emit(success(exported=rows, path=str(dest)), as_json=as_json, text=f"{rows} rows in {dest}")

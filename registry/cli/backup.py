"""``envsdk registry backup``: copy an embedded registry while it is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local


def backup(
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="A new or empty folder.")],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Copy database and blobs; the copy opens as a registry of its own.

    Example: envsdk registry backup backups/monday
    """
    from registry.archive import back_up

    with open_local(registry) as opened:
        path = back_up(opened.database, opened.blobs, dest)
    emit(success(path=str(path)), as_json=as_json, text=f"sqlite:///{path}")

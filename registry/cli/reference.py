"""``envsdk registry reference``: whose estimates pages and queries show where none is named."""

from __future__ import annotations

from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local


def reference(
    lineage: Annotated[
        str, typer.Argument(metavar="LINEAGE", help="Make this one the reference; else only show.")
    ] = "",
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show or choose the reference lineage; the first one measured is it until another is chosen.

    Example: envsdk registry reference smollm2-135m
    """
    from registry.derive.lineages import reference_name, set_reference

    with open_local(registry) as opened:
        if lineage:
            with opened.database.writing() as session:
                set_reference(session, lineage)
        with opened.database.reading() as session:
            name = reference_name(session)
    emit(success(reference=name), as_json=as_json, text=name or "no policy was measured yet")

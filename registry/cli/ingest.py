"""``envsdk registry ingest``: append the outcomes of a ledger file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.options import JsonFlag, finish
from envsdk.errors import FaultyError
from registry.cli.options import RegistryOption, plain


def ingest(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="Ended episodes as JSON lines.", exists=True)],
    *,
    run: Annotated[str, typer.Option(help="Name of the run that they belong to.")] = "",
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Append outcomes, each once. Broken off, it is finished by running it again. Exit 1 where one was rejected.

    Example: envsdk registry ingest runs/first/ledger.jsonl
    """
    from registry.client import open_registry
    from registry.outcomes import AppendResult

    def heard(result: AppendResult) -> None:
        typer.echo(
            f"{result.accepted:,} appended, {result.duplicate:,} known, {len(result.rejected):,} rejected", err=True
        )

    with open_registry(registry) as opened, ledger.open("rb") as lines:
        result = opened.append_lines(lines, run=run, progress=heard)
    for item in result.rejected[:20]:
        typer.echo(f"✘ {item.which} {item.code}: {item.why}", err=True)
    finish(
        [FaultyError(item.why, code=item.code, where=item.which) for item in result.rejected],
        as_json=as_json,
        text=f"{result.accepted} appended",
        accepted=result.accepted,
        duplicate=result.duplicate,
        rejected=plain(result.rejected),
    )

"""``envsdk registry rebuild``: derive every estimate and state again from the outcomes."""

from __future__ import annotations

import typer

from envsdk.cli.options import JsonFlag, finish
from envsdk.errors import FaultyError
from registry.cli.options import RegistryOption, open_local


def rebuild(*, registry: RegistryOption = None, as_json: JsonFlag = False) -> None:
    """Rebuild what is derived. Exit 1 where it came out otherwise than it was: the old rows were wrong.

    Example: envsdk registry rebuild
    """
    from registry.derive.rebuild import rebuild as run

    def heard(done: int, total: int) -> None:
        typer.echo(f"{done:,} of {total:,} outcomes", err=True)

    with open_local(registry) as opened, opened.database.writing() as session:
        result = run(session, heard=heard)
    wrong = FaultyError(
        "NOT the same as before; the rebuilt rows are kept",
        code="derived_rows_were_wrong",
        hint="nothing is left to do; report it, with what was done since the last rebuild that came out the same",
    )
    finish(
        [] if result.same else [wrong],
        as_json=as_json,
        text=f"{result.standings} standings from {result.outcomes} outcomes: "
        f"{'the same as before' if result.same else wrong.message}",
        outcomes=result.outcomes,
        standings=result.standings,
        same=result.same,
    )

"""``envsdk registry sets``: the task sets and their revisions."""

from __future__ import annotations

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local, plain, table


def sets(*, registry: RegistryOption = None, as_json: JsonFlag = False) -> None:
    """List task sets, each revision with its size and the query that it was pinned from.

    Example: envsdk registry sets
    """
    from registry.revisions import list_revisions

    with open_local(registry) as opened, opened.database.reading() as session:
        found = list_revisions(session)
    if not found:
        typer.echo("no task set was pinned yet: envsdk registry pin QUERY --name NAME", err=True)
    rows = [(one.reference, str(one.tasks), one.digest[:12], one.query) for one in found]
    emit(success(revisions=plain(found)), as_json=as_json, text=table(rows, head=("set", "tasks", "digest", "query")))

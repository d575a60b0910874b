"""``envsdk registry save``: keep a query under a name."""

from __future__ import annotations

from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, open_local


def save(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    q: Annotated[str, typer.Argument(metavar="QUERY", help="The query to keep.")],
    *,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Keep a query; `saved:NAME` stands for its conditions in any other. Saving again replaces it.

    Example: envsdk registry save easy-shell "tag:shell p:0.5..0.9"
    """
    from registry.query.saved import save_query

    with open_local(registry) as opened, opened.database.writing() as session:
        kept = save_query(session, name, q)
    emit(success(name=kept.name, query=kept.query), as_json=as_json, text=f"saved:{kept.name}  {kept.query}")

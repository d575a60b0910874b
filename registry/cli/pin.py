"""``envsdk registry pin``: pin a query to an immutable task-set revision, and write its lock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.options import JsonFlag, finish
from registry.cli.options import RegistryOption, empty_query, plain


def pin(
    q: Annotated[str, typer.Argument(metavar="QUERY", help="Which tasks to pin.")],
    *,
    name: Annotated[str, typer.Option(help="Name of the task set; else one from its digest.")] = "",
    lock: Annotated[Path | None, typer.Option(help="Write the lock file here.")] = None,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Pin a query: a new revision where the set's latest differs. Exit 1 where no task may enter.

    Example: envsdk registry pin "status:learnable tag:shell" --name shell --lock shell.lock
    """
    from registry.client import open_registry
    from registry.lock import write_lock

    with open_registry(registry) as opened:
        revision = opened.resolve(q, name=name)
    for item in revision.left_out[:20]:
        typer.echo(f"left out: {item.slug} ({item.why})", err=True)
    if len(revision.left_out) > 20:
        typer.echo(f"left out: {len(revision.left_out) - 20} more", err=True)
    if lock is not None and revision.items:
        write_lock(revision, lock)
    nothing = empty_query(q)
    text = f"{revision.name}@{revision.revision}  {len(revision.items)} tasks  {revision.digest}"
    finish(
        [] if revision.items else [nothing],
        as_json=as_json,
        text=text if revision.items else f"nothing pinned: {nothing}",
        set=revision.name,
        revision=revision.revision,
        digest=revision.digest,
        size=len(revision.items),
        items=plain(revision.items),
        left_out=plain(revision.left_out),
    )

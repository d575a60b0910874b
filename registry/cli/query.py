"""``envsdk registry query``: the tasks that a query finds, with their estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from registry.cli.options import RegistryOption, plain, rate, table

if TYPE_CHECKING:
    from registry.query.page import QueryItem


def query(
    q: Annotated[str, typer.Argument(metavar="QUERY", help="As in docs/reference/query.md; empty finds all.")] = "",
    *,
    page: Annotated[int, typer.Option(min=1, max=1000, help="Items a page.")] = 50,
    cursor: Annotated[str | None, typer.Option("--next", help="The `next` of the page before.")] = None,
    exact_total: Annotated[bool, typer.Option("--exact-total", help="Count beyond 1,000 too.")] = False,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Find tasks. Nothing found is an empty result, not an error.

    Example: envsdk registry query "status:learnable tag:shell p:0.2..0.8 sort:-learnability limit:64"
    """
    from registry.client import open_registry
    from registry.query.errors import QueryError

    with open_registry(registry) as opened:
        try:
            found = opened.query(q, limit=page, cursor=cursor, exact_total=exact_total)
        except QueryError as error:
            typer.echo(error.pointer(q), err=True)
            raise
    rows = [
        (item.slug, item.family, item.status, rate(item.p, item.low, item.high, item.n), *_digests(item))
        for item in found.items
    ]
    count = f"more than {len(found.items)}" if found.total is None else str(found.total)
    typer.echo(f"{count} found" + (f"; the next page: --next {found.next}" if found.next else ""), err=True)
    envelope = success(items=plain(found.items), next=found.next, total=found.total, more=found.more)
    head = ("slug", "family", "status", "pass rate", "task", "verifier")
    emit(envelope, as_json=as_json, text=table(rows, head=head))


def _digests(item: QueryItem) -> tuple[str, str]:
    """Versions of a task that was changed and pushed again bear one name; these tell them apart."""
    return item.task_digest[:12], item.verifier_digest[:12]

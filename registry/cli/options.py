"""Options and output that the registry's commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envsdk.errors import FaultyError, UsageError

if TYPE_CHECKING:
    from registry.local import LocalRegistry

RegistryOption = Annotated[
    str | None, typer.Option("--registry", metavar="URL", help="A database or server; else ENVSDK_REGISTRY.")
]


def open_local(url: str | None) -> LocalRegistry:
    """Open a registry that must be a database, for what is done beside the database itself.

    Raises:
        UsageError: ``url`` names a server (``needs_database``).
    """
    from registry.client import open_registry
    from registry.local import LocalRegistry

    opened = open_registry(url)
    if not isinstance(opened, LocalRegistry):
        opened.close()
        raise UsageError(
            f"{opened.url} is a server", code="needs_database", hint="run this where the registry's database is"
        )
    return opened


def empty_query(q: str) -> FaultyError:
    """The error of a query that finds nothing a command may use."""
    return FaultyError(
        "the query matches no task that may be used",
        code="empty_query",
        hint="envsdk registry query shows what a query finds; tasks need a complete check report",
        where=q,
    )


def plain(value: Any) -> Any:
    """Dataclasses as dictionaries, whatever holds them, for the envelope."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str]) -> str:
    """Left-aligned columns, two spaces apart, the head first; nothing where there are no rows."""
    if not rows:
        return ""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def rate(p: float, low: float, high: float, n: int) -> str:
    """An estimate as it is always shown: with its interval, and n; only the prior where n is 0."""
    return f"{p:.2f} ({low:.2f}-{high:.2f}) n={n}" if n else "not enough data"

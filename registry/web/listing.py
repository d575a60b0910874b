"""Tables as CSV: what a query finds, and what a revision holds, whole and row by row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from registry.local import LocalRegistry
from registry.query import parse
from registry.query.page import MAX_PAGE_SIZE
from registry.web.membership import members, shown_lineage
from registry.web.pages.revision import find

_TASK = ("slug", "family", "status", "p", "low", "high", "n", "ungraded", "learnability", "verified", "policy")
_DIGESTS = ("task_digest", "verifier_digest")
_MEMBER = ("ordinal", "slug", "family", "status", "p", "low", "high", "n")


def routes(registry: LocalRegistry) -> APIRouter:
    """``/tasks.csv?q=...`` and ``/sets/NAME/NUMBER.csv``."""
    router = APIRouter()

    @router.get("/tasks.csv")
    def tasks(q: str = "") -> Response:
        """Every task that a query finds, with its estimate."""
        parse(q)
        registry.query(q, limit=1)  # a fault in the query is an answer of its own, not the end of a stream
        return _csv((*_TASK, *_DIGESTS), _found(registry, q), name="tasks")

    @router.get("/sets/{name}/{number}.csv")
    def revision(request: Request, name: str, number: str) -> Response:
        """Every task of a revision, in order, with its estimate."""
        del request
        with registry.database.reading() as session:
            found = find(session, name, number)
        return _csv((*_MEMBER, *_DIGESTS), _members(registry, found.id), name=f"{name}-{number}")

    return router


def _found(registry: LocalRegistry, q: str) -> Iterator[Any]:
    cursor = None
    while True:
        page = registry.query(q, limit=MAX_PAGE_SIZE, cursor=cursor)
        yield from ({key: getattr(item, key) for key in (*_TASK, *_DIGESTS)} for item in page.items)
        cursor = page.next
        if cursor is None:
            return


def _members(registry: LocalRegistry, revision: int) -> Iterator[Any]:
    after = -1
    while True:
        with registry.database.reading() as session:
            lineage, _ = shown_lineage(session, "")
            rows = members(session, revision, lineage, after=after, at_most=MAX_PAGE_SIZE)
        yield from rows
        if len(rows) < MAX_PAGE_SIZE:
            return
        after = rows[-1]["ordinal"]


def _csv(columns: Sequence[str], rows: Iterable[Any], *, name: str) -> Response:
    def lines() -> Iterator[str]:
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_cell(row[column]) for column in columns])
            if out.tell() > 1 << 16:
                yield out.getvalue()
                out.seek(0)
                out.truncate()
        yield out.getvalue()

    attached = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(lines(), media_type="text/csv; charset=utf-8", headers=attached)


def _cell(value: Any) -> Any:
    """A value as a spreadsheet takes it: absent stays empty, and no text is taken for a formula."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t"} else value

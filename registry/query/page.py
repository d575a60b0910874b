"""Run a query: one page of items with their estimates, an opaque cursor to the next, and a bounded total."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ScalarSelect, func, select
from sqlalchemy.orm import Session

from registry.db import Item, Standing
from registry.query.ast import Query
from registry.query.errors import QueryError
from registry.query.parser import parse
from registry.query.saved import expanded
from registry.query.sql import Selection, compile_query

PAGE_SIZE = 50
MAX_PAGE_SIZE = 1_000
COUNT_TO = 1_000
"""Totals are exact up to here, then `None`; counting on would cost more than the page."""


@dataclass(frozen=True, slots=True)
class QueryItem:
    """One task under one verifier, as a list shows it.

    Attributes:
        p, low, high: posterior mean and 90 % interval of the pass rate, for ``policy``; with ``n`` of 0 it is the
        prior. n, ungraded: graded outcomes behind the estimate, and those without a grade. updated_at: Unix time of
        the newest event in the estimate.
    """

    slug: str
    family: str
    tags: tuple[str, ...]
    status: str
    p: float
    low: float
    high: float
    n: int
    task_digest: str
    verifier_digest: str
    policy: str
    learnability: float
    ungraded: int
    verified: str
    broken: bool
    flaky: bool
    updated_at: float


@dataclass(frozen=True, slots=True)
class Page:
    """``next`` is `None` at the end.

    ``total`` is `None` where there are more than 1,000 and nobody asked: ``more``.
    """

    items: tuple[QueryItem, ...]
    next: str | None
    total: int | None
    more: bool


def run_query(
    session: Session,
    query: Query | str,
    *,
    size: int = PAGE_SIZE,
    cursor: str | None = None,
    exact_total: bool = False,
) -> Page:
    """One page of ``query``.

    Raises:
        QueryError: the query has a fault, or ``cursor`` is not one of this query's.
    """
    query = expanded(session, parse(query) if isinstance(query, str) else query)
    size = max(1, min(size, MAX_PAGE_SIZE))
    selection = compile_query(session, query)
    if selection.nothing:
        return Page((), None, 0, more=False)
    after, given = _read_cursor(cursor, query)
    room = size if query.limit is None else min(size, query.limit - given)
    bound = COUNT_TO + 1 if query.limit is None else min(query.limit, COUNT_TO + 1)
    rows = session.execute(_details(selection, room + 1, after, bound)).all() if room > 0 else []
    items = tuple(_item(row, selection.policy) for row in rows[:room])
    done = len(rows) <= room or (query.limit is not None and given + room >= query.limit)
    following = None if done else _cursor(query, rows[room - 1], given + room)
    if exact_total:
        total: int | None = _exact(session, selection, query.limit)
    elif cursor is None and following is None:
        total = len(items)  # a first page that is the last has counted itself
    else:
        total = rows[0].bounded if rows else session.scalar(select(_count(selection, bound)))
        total = None if total is None or total > COUNT_TO else total
    return Page(items, following, total, more=total is None)


def matching_ids(session: Session, query: Query, *, at_most: int) -> list[int]:
    """Ids of the first ``at_most`` items that match, in order."""
    query = expanded(session, query)
    selection = compile_query(session, query)
    if selection.nothing:
        return []
    size = at_most if query.limit is None else min(at_most, query.limit)
    return [row.item_id for row in session.execute(selection.page(size, None))]


_ITEM, _STANDING = Item.__table__, Standing.__table__
# Made once: checking each column again for every query costs more than asking for it.
_SHOWN = select(
    *(_ITEM.c[name] for name in ("id", "slug", "family", "tags", "task_digest", "verifier_digest", "verified")),
    *(_ITEM.c[name] for name in ("broken", "flaky")),
    *(_STANDING.c[name] for name in ("status", "mean", "low", "high", "n", "ungraded", "learnability", "updated_at")),
)


def _details(selection: Selection, size: int, after: tuple[Any, int] | None, bound: int) -> Any:
    """One page's rows, each with the number of all matches up to ``bound``: one question to the database, not two."""
    found = selection.page(size, after).subquery()
    mine = (_STANDING.c.lineage_id == selection.lineage_id) & (_STANDING.c.item_id == found.c.item_id)
    # Outer joins, though every row has its partners: SQLite keeps their order, and may start from the wrong end of
    # inner ones.
    keys = (found.c.sort_value, found.c.item_id)
    return (
        _SHOWN.add_columns(found.c.sort_value, _count(selection, bound).label("bounded"))
        .select_from(found)
        .outerjoin(_ITEM, _ITEM.c.id == found.c.item_id)
        .outerjoin(_STANDING, mine)
        .order_by(*(key.desc() if selection.descending else key.asc() for key in keys))
    )


def _item(row: Any, policy: str) -> QueryItem:
    # By place, as `_SHOWN` asks for them: fifty rows of seventeen names looked up are a fifth of the whole call.
    _, slug, family, tags, task, verifier, verified, broken, flaky, *measured = row
    status, mean, low, high, n, ungraded, learnability, updated_at, *_ = measured
    return QueryItem(
        slug,
        family,
        tuple(tags),
        status,
        mean,
        low,
        high,
        n,
        task,
        verifier,
        policy,
        learnability,
        ungraded,
        verified,
        broken,
        flaky,
        updated_at,
    )


def _count(selection: Selection, bound: int) -> ScalarSelect[int]:
    return select(func.count()).select_from(selection.ids.limit(bound).subquery()).scalar_subquery()


def _exact(session: Session, selection: Selection, limit: int | None) -> int:
    found = session.scalar(select(func.count()).select_from(selection.ids.subquery())) or 0
    return found if limit is None else min(found, limit)


def _check(query: Query) -> int:
    return zlib.crc32(str(query).encode())


def _cursor(query: Query, row: Any, given: int) -> str:
    body = json.dumps([_check(query), row.sort_value, row.id, given]).encode()
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _read_cursor(cursor: str | None, query: Query) -> tuple[tuple[Any, int] | None, int]:
    if cursor is None:
        return None, 0
    try:
        check, value, item, given = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        well_formed = isinstance(value, str | int | float) and type(item) is int and type(given) is int
    except (ValueError, TypeError):
        well_formed, check = False, None
    if not well_formed or check != _check(query):
        raise QueryError(
            "this page's cursor belongs to another query",
            column=1,
            code="query_bad_cursor",
            hint="start again at the first page",
        )
    if query.sort.key == "slug" and not isinstance(value, str):
        value = str(value)
    return (value, item), given

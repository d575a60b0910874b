"""The list of tasks: a search box, facets with counts, and one row a task with its estimate."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request

from registry.db import Lineage, Tag
from registry.local import LocalRegistry
from registry.query import Query, Sort, parse
from registry.query.errors import QueryError
from registry.query.facets import status_counts
from registry.query.page import PAGE_SIZE, Page, QueryItem, run_query
from registry.query.sql import find_lineage
from registry.web.recent import recent_rates
from registry.web.render import add_page, wants_json

COLUMNS = (
    ("slug", "Task"),
    ("p", "Pass rate"),
    ("n", "Episodes"),
    ("learnability", "Learnability"),
    ("updated", "Updated"),
)
TOP_TAGS = 24
_NOTHING = Page((), None, 0, more=False)


def routes(registry: LocalRegistry) -> APIRouter:
    """The page of ``registry``'s tasks."""

    def view(request: Request) -> Mapping[str, Any]:
        text = request.query_params.get("q", "")
        cursor = request.query_params.get("after") or None
        with registry.database.reading() as session:
            try:
                query = parse(text)
                page = run_query(session, query, size=PAGE_SIZE, cursor=cursor)
            except QueryError as error:
                if wants_json(request):
                    raise
                return _shown(session, text, Query(), _NOTHING, fault=error)
            return _shown(session, text, query, page, first_page=cursor is None)

    router = APIRouter()
    add_page(router, "/tasks", "tasks.html", view, parameters=("q", "after"))
    return router


def _shown(
    session: Session, text: str, query: Query, page: Page, *, fault: QueryError | None = None, first_page: bool = True
) -> dict[str, Any]:
    lineage = find_lineage(session, query.policy)
    return {
        "title": "Tasks",
        "q": text,
        "fault": None if fault is None else _fault(fault, text),
        "lineage": session.scalar(select(Lineage.name).where(Lineage.id == lineage)) or "",
        "items": _items(session, page.items, lineage),
        "next": page.next,
        "next_url": f"/tasks?{urlencode({'q': text, 'after': page.next})}" if page.next else None,
        "total": page.total,
        "more": page.more,
        "first_page": first_page,
        "columns": [_column(query, key, label) for key, label in COLUMNS],
        **_facets(session, query, lineage),
    }


def _items(session: Session, items: Sequence[QueryItem], lineage: int) -> list[dict[str, Any]]:
    histories = recent_rates(session, [(item.task_digest, item.verifier_digest) for item in items], lineage)
    return [
        dataclasses.asdict(item) | {"history": histories.get((item.task_digest, item.verifier_digest), [])}
        for item in items
    ]


def _fault(error: QueryError, text: str) -> dict[str, str]:
    return {"message": error.message, "hint": error.hint, "pointer": error.pointer(text), "code": error.code}


def _column(query: Query, key: str, label: str) -> dict[str, Any]:
    sorted_here = query.sort.key == key
    descending = not query.sort.descending if sorted_here else key != "slug"
    turned = dataclasses.replace(query, sort=Sort(key, descending=descending))
    direction = ("descending" if query.sort.descending else "ascending") if sorted_here else None
    return {"key": key, "label": label, "url": f"/tasks?{urlencode({'q': str(turned)})}", "aria_sort": direction}


def _facets(session: Session, query: Query, lineage: int) -> dict[str, Any]:
    statuses = [
        _facet("status", one.status, one.items, query, more=one.more) for one in status_counts(session, lineage)
    ]
    tags = session.execute(select(Tag.kind, Tag.name, Tag.items).order_by(Tag.items.desc(), Tag.name).limit(TOP_TAGS))
    chips = [_facet(kind, name, items, query) for kind, name, items in tags]
    return {
        "statuses": statuses,
        "families": [chip for chip in chips if chip["field"] == "family"],
        "tags": [chip for chip in chips if chip["field"] == "tag"],
    }


def _facet(field: str, value: str, count: int, query: Query, *, more: bool = False) -> dict[str, Any]:
    """A chip that adds its condition to the query, or takes it away where it holds already."""
    chosen = any(term.field == field and term.values == (value,) and not term.negated for term in query.terms)
    if chosen:
        kept = tuple(term for term in query.terms if not (term.field == field and term.values == (value,)))
        target = str(dataclasses.replace(query, terms=kept))
    else:
        quoted = value if value.replace("-", "").replace("_", "").isalnum() else f'"{value}"'
        others = tuple(term for term in query.terms if term.field != field or field == "tag")
        target = f"{dataclasses.replace(query, terms=others)} {field}:{quoted}".strip()
    url = f"/tasks?{urlencode({'q': target})}" if target else "/tasks"
    return {"field": field, "value": value, "count": count, "more": more, "url": url, "chosen": chosen}

"""Completions for the word of a query that is being typed: fields, their values, and names that the registry knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from registry.api.answer import done
from registry.db import Lineage, SavedQuery, Tag, TaskSet
from registry.local import LocalRegistry
from registry.query.ast import quoted
from registry.query.lexer import MAX_LENGTH
from registry.query.parser import FIELDS, FLAGS, SORT_KEYS, VERIFIED
from registry.saturation.states import STATUSES

MOST = 12
WHAT = {
    "status": "learnable, saturated, too hard, …",
    "tag": "a tag of the task",
    "flag": "broken or flaky",
    "p": "pass rate, 0.2..0.8",
    "n": "graded episodes, 10..",
    "policy": "whose estimates",
    "family": "what it was drawn from",
    "verifier": "what its checks said",
    "set": "in a task set",
    "saved": "a saved query",
    "sort": "sort:-learnability",
    "limit": "at most so many",
}
_FIXED: dict[str, Sequence[str]] = {
    "status": STATUSES,
    "flag": FLAGS,
    "verifier": VERIFIED,
    "sort": tuple(sign + key for key in SORT_KEYS for sign in ("-", "")),
    "p": ("0.2..0.8", "..0.1", "0.9.."),
    "n": ("8..", "..8"),
    "limit": ("64", "256"),
}


def routes(registry: LocalRegistry) -> APIRouter:
    """``/suggest?q=TEXT&at=CURSOR``."""
    router = APIRouter()

    @router.get("/suggest")
    def suggest(
        q: Annotated[str, Query(max_length=MAX_LENGTH)] = "", at: Annotated[int | None, Query(ge=0)] = None
    ) -> Response:
        """What could stand where the cursor is: each with the whole query and the cursor it would give."""
        with registry.database.reading() as session:
            return done(suggestions=complete(session, q, len(q) if at is None else min(at, len(q))))

    return router


def complete(session: Session, text: str, at: int) -> list[dict[str, Any]]:
    """Completions of the word that ends at ``at``: ``text``, ``at`` after it, what it ``says`` and ``means``."""
    start = at
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    sign = "-" if text[start:at].startswith("-") else ""
    word = text[start + len(sign) : at]
    field, colon, value = word.partition(":")
    if not colon:
        found = [(f"{sign}{name}:", WHAT[name]) for name in FIELDS if name.startswith(word.lower())]
    else:
        before, comma, last = value.rpartition(",")
        head = f"{sign}{field}:{before}{comma}"
        names = _values(session, field.lower(), last.strip('"').lower())
        found = [(f"{head}{quoted(name) if name[:1] != '-' else name} ", "") for name in names]
    rest = text[at:].lstrip() if colon else text[at:]
    return [
        {"says": said.strip(), "means": means, "text": text[:start] + said + rest, "at": start + len(said)}
        for said, means in found[:MOST]
        if said.strip() != text[start:at]
    ]


def _values(session: Session, field: str, begins: str) -> list[str]:
    if field in _FIXED:
        return [value for value in _FIXED[field] if value.startswith(begins)]
    kept: dict[str, Callable[[], Iterable[str]]] = {
        "tag": lambda: _names(session, Tag.name, begins, Tag.kind == "tag"),
        "family": lambda: _names(session, Tag.name, begins, Tag.kind == "family"),
        "set": lambda: _names(session, TaskSet.name, begins),
        "saved": lambda: _names(session, SavedQuery.name, begins),
        "policy": lambda: _names(session, Lineage.name, begins, Lineage.name != ""),
    }
    return list(kept[field]()) if field in kept else []


def _names(session: Session, column: Any, begins: str, *conditions: Any) -> Iterable[str]:
    statement = select(column).where(*conditions).order_by(column).limit(MOST)
    return session.scalars(statement.where(column.startswith(begins, autoescape=True)) if begins else statement)

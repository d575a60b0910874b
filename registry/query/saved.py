"""Queries kept under a name, and ``saved:NAME`` put in their place."""

from __future__ import annotations

import time
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import SavedQuery
from registry.query.ast import BEST_FIRST, Query, Term
from registry.query.errors import QueryError, suggestion
from registry.query.parser import parse
from registry.revisions import normal_name


def save_query(session: Session, name: str, text: str) -> SavedQuery:
    """Keep ``text`` as ``name``, in place of what the name stood for; what it refers to is written out.

    Raises:
        QueryError: the query has a fault.
        UsageError: ``name`` is no name.
    """
    kept = normal_name(name)
    query = str(expanded(session, parse(text)))
    found = session.scalar(select(SavedQuery).where(SavedQuery.name == kept))
    if found is None:
        found = SavedQuery(name=kept, query=query, created_at=time.time())
        session.add(found)
    found.query = query
    session.flush()
    return found


def expanded(session: Session, query: Query) -> Query:
    """``query`` with each ``saved:NAME`` replaced by its conditions; its own policy, sort and limit come first.

    Raises:
        QueryError: nothing is kept under a name (``query_unknown_saved``).
    """
    if not any(term.field == "saved" for term in query.terms):
        return query
    terms: list[Term] = []
    policy, sort, limit = query.policy, query.sort, query.limit
    for term in query.terms:
        if term.field != "saved":
            terms.append(term)
            continue
        inner = parse(_text_of(session, term))
        terms += [replace(one, column=term.column) for one in inner.terms]
        policy = policy or inner.policy
        sort = inner.sort if sort == BEST_FIRST else sort
        limit = inner.limit if limit is None else limit
    return Query(tuple(terms), policy, sort, limit)


def _text_of(session: Session, term: Term) -> str:
    name = term.values[0].lower()
    found = session.scalar(select(SavedQuery.query).where(SavedQuery.name == name))
    if found is None:
        names = session.scalars(select(SavedQuery.name).order_by(SavedQuery.name).limit(200)).all()
        raise QueryError(
            f"no query is saved as {name!r}",
            column=term.column,
            length=len(str(term)),
            code="query_unknown_saved",
            hint=suggestion(name, names) if names else "`envsdk registry save` keeps one",
        )
    return found

"""Task sets: their names and how their latest revision stands, and the form that pins a query to one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.api.guard import Guard
from registry.db import SetRevision, TaskSet
from registry.local import LocalRegistry
from registry.web.forms import Sent, add_form
from registry.web.membership import shown_lineage, summaries
from registry.web.render import add_page

MOST = 200


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The list of sets and the form that pins."""

    def view(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            lineage, policy = shown_lineage(session, "")
            return {"title": "Task sets", "lineage": policy, "sets": _sets(session, lineage)}

    def pin(sent: Sent) -> str:
        name = sent.fields.get("name", "").strip()
        if not name:
            raise UsageError("a task set needs a name", code="bad_name", hint="use letters, digits, '-' and '.'")
        revision = registry.resolve(sent.fields.get("q", ""), name=name)
        if not revision.items:
            raise UsageError(
                "no checked task matches the query", code="empty_set", hint="drafts and broken tasks enter no set"
            )
        return f"/sets/{revision.name}/{revision.revision}"

    router = APIRouter()
    add_page(router, "/sets", "sets.html", view)
    add_form(router, "/sets", guard, scope="sets", act=pin)
    return router


def _sets(session: Session, lineage: int) -> list[dict[str, Any]]:
    newest = (
        select(SetRevision.set_id, func.max(SetRevision.number).label("number"), func.count().label("revisions"))
        .where(SetRevision.deleted_at.is_(None))
        .group_by(SetRevision.set_id)
        .subquery()
    )
    rows = session.execute(
        select(TaskSet.name, SetRevision, newest.c.revisions)
        .join(newest, newest.c.set_id == TaskSet.id)
        .join(SetRevision, (SetRevision.set_id == TaskSet.id) & (SetRevision.number == newest.c.number))
        .order_by(SetRevision.created_at.desc(), SetRevision.id.desc())
        .limit(MOST)
    ).all()
    sums = summaries(session, [revision.id for _, revision, _ in rows], lineage)
    return [
        {
            "name": name,
            "revision": revision.number,
            "revisions": revisions,
            "size": revision.size,
            "digest": revision.digest,
            "query": revision.query,
            "created_at": revision.created_at,
            **asdict(sums[revision.id]),
        }
        for name, revision, revisions in rows
    ]

"""Two revisions of a task set side by side: what one has and the other has not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from starlette.requests import Request

from registry.db import SetRevision
from registry.local import LocalRegistry
from registry.web.membership import count_without, members, shown_lineage
from registry.web.pages.revision import find
from registry.web.render import add_page

LISTED = 200


def routes(registry: LocalRegistry) -> APIRouter:
    """The page ``/sets/NAME/diff?from=NUMBER&to=NUMBER``; without numbers, the latest against the one before it."""

    def view(request: Request) -> Mapping[str, Any]:
        name = request.path_params["name"]
        with registry.database.reading() as session:
            newer = find(session, name, request.query_params.get("to") or None)
            numbers = list(
                session.scalars(
                    select(SetRevision.number)
                    .where(SetRevision.set_id == newer.set_id, SetRevision.deleted_at.is_(None))
                    .order_by(SetRevision.number.desc())
                )
            )
            before = max((number for number in numbers if number < newer.number), default=newer.number)
            older = find(session, name, request.query_params.get("from") or str(before))
            lineage, policy = shown_lineage(session, "")
            added = count_without(session, newer.id, older.id)
            return {
                "title": f"{name}: {older.number} to {newer.number}",
                "lineage": policy,
                "name": name,
                "from": older.number,
                "to": newer.number,
                "numbers": numbers,
                "added": members(session, newer.id, lineage, at_most=LISTED, without=older.id),
                "removed": members(session, older.id, lineage, at_most=LISTED, without=newer.id),
                "n_added": added,
                "n_removed": count_without(session, older.id, newer.id),
                "kept": newer.size - added,
            }

    router = APIRouter()
    add_page(router, "/sets/{name}/diff", "comparison.html", view, parameters=("from", "to"))
    return router

"""The refresh queue: proposals to look at before anybody publishes them, and a form that asks for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request

from registry.api.guard import Guard
from registry.db import Lineage, Proposal, SetRevision, TaskSet
from registry.local import LocalRegistry
from registry.web.render import add_page

NEWEST = 50
MOST_SETS = 200
_POLICIES = select(Lineage.name).where(Lineage.name != "").order_by(Lineage.is_reference.desc(), Lineage.name)


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The page of proposals; its form starts a job (`registry.web.pages.jobs`)."""
    del guard

    def view(request: Request) -> Mapping[str, Any]:
        with registry.database.reading() as session:
            return {
                "title": "Refresh",
                "proposals": _proposals(session),
                "sets": list(session.scalars(select(TaskSet.name).order_by(TaskSet.name).limit(MOST_SETS))),
                "policies": list(session.scalars(_POLICIES)),
                "chosen": request.query_params.get("set", ""),
            }

    router = APIRouter()
    add_page(router, "/refresh", "refresh.html", view, parameters=("set",))
    return router


def _proposals(session: Session) -> list[dict[str, Any]]:
    rows = session.execute(
        select(Proposal, TaskSet.name, SetRevision.number)
        .join(TaskSet, TaskSet.id == Proposal.set_id)
        .join(SetRevision, SetRevision.id == Proposal.parent_id)
        .order_by(Proposal.id.desc())
        .limit(NEWEST)
    )
    return [
        {
            "proposal": proposal.id,
            "set": name,
            "revision": number,
            "state": proposal.state,
            "policy": proposal.body["policy"],
            "retire": len(proposal.body["retire"]),
            "add": len(proposal.body["add"]),
            "size_before": proposal.body["size_before"],
            "size_after": proposal.body["size_after"],
            "created_at": proposal.created_at,
        }
        for proposal, name, number in rows
    ]

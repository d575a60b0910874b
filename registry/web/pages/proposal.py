"""One refresh proposal: what would go, what would come and why; published or dismissed from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.api.guard import Guard
from registry.db import Proposal, SetRevision, TaskSet
from registry.local import LocalRegistry
from registry.refresh.proposal import latest_id
from registry.refresh.publish import dismiss_proposal, publish_proposal
from registry.web.forms import Sent, add_form
from registry.web.render import add_page


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The page and its two forms."""

    def view(request: Request) -> Mapping[str, Any]:
        with registry.database.reading() as session:
            return _proposal(session, request.path_params["number"])

    def publish(sent: Sent) -> str:
        number = int(sent.request.path_params["number"])
        with registry.database.writing() as session:
            revision = publish_proposal(session, number, by=str(sent.holder))
            name = session.scalar(select(TaskSet.name).where(TaskSet.id == revision.set_id))
            return f"/sets/{name}/{revision.number}"

    def dismiss(sent: Sent) -> str:
        number = int(sent.request.path_params["number"])
        with registry.database.writing() as session:
            dismiss_proposal(session, number, by=str(sent.holder))
        return f"/proposals/{number}"

    router = APIRouter()
    add_page(router, "/proposals/{number}", "proposal.html", view)
    add_form(router, "/proposals/{number:int}/publish", guard, scope="sets", act=publish)
    add_form(router, "/proposals/{number:int}/dismiss", guard, scope="sets", act=dismiss)
    return router


def _proposal(session: Session, number: str) -> dict[str, Any]:
    wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0
    proposal = session.get(Proposal, wanted)
    if proposal is None:
        raise UsageError(f"there is no proposal {number}", code="unknown_proposal", hint="/refresh lists them")
    name = session.scalar(select(TaskSet.name).where(TaskSet.id == proposal.set_id))
    parent = session.get_one(SetRevision, proposal.parent_id)
    made = session.get(SetRevision, proposal.revision_id) if proposal.revision_id else None
    body = proposal.body
    return {
        "title": f"Refresh {name}@{parent.number}",
        "lineage": body["policy"],
        "proposal": proposal.id,
        "state": proposal.state,
        "set": name,
        "revision": parent.number,
        "created_at": proposal.created_at,
        "decided_at": proposal.decided_at,
        "decided_by": proposal.decided_by,
        "spent": body.get("spent", {}),
        "published_as": None if made is None else made.number,
        "stale": proposal.state == "open" and latest_id(session, proposal.set_id) != proposal.parent_id,
        **{key: body[key] for key in ("retire", "add", "not_replaced", "refused", "size_before", "size_after")},
    }

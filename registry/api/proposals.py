"""Refresh proposals over HTTP: looked at, published, dismissed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from sqlalchemy import select
from starlette.responses import Response

from registry.api.answer import answered, done
from registry.api.guard import MAX_NUMBER, Guard
from registry.db import Proposal, TaskSet
from registry.local import LocalRegistry
from registry.refresh.publish import dismiss_proposal, publish_proposal
from registry.tokens import Holder

Number = Annotated[int, Path(ge=1, le=MAX_NUMBER)]
_MOST = 100


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The endpoints over an open registry."""
    router = APIRouter()
    decides: Any = guard.may("sets", bounded=False)

    @router.get("/proposals")
    def proposals(request: Request, state: Annotated[str, Query(max_length=12)] = "open") -> Response:
        """The newest proposals in a state: open, published or dismissed."""
        with registry.database.reading() as session:
            rows = session.execute(
                select(Proposal, TaskSet.name)
                .join(TaskSet, TaskSet.id == Proposal.set_id)
                .where(Proposal.state == state)
                .order_by(Proposal.id.desc())
                .limit(_MOST)
            )
            found = [_shown(proposal, name) for proposal, name in rows]
        return answered(request, proposals=found)

    @router.post("/proposals/{number}/publish")
    def publish(number: Number, holder: Holder = decides) -> Response:
        """Make the proposal's revision."""
        with registry.database.writing() as session:
            revision = publish_proposal(session, number, by=str(holder))
            return done(proposal=number, revision=revision.number, digest=revision.digest)

    @router.post("/proposals/{number}/dismiss")
    def dismiss(number: Number, holder: Holder = decides) -> Response:
        """Close the proposal without doing it."""
        with registry.database.writing() as session:
            dismiss_proposal(session, number, by=str(holder))
        return done(proposal=number)

    return router


def _shown(proposal: Proposal, name: str) -> dict[str, Any]:
    return {
        "proposal": proposal.id,
        "set": name,
        "state": proposal.state,
        "created_at": proposal.created_at,
        "decided_at": proposal.decided_at,
        "decided_by": proposal.decided_by,
        "body": proposal.body,
    }

"""The refresh queue: proposals with their reasons, before anybody publishes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from starlette.requests import Request

from registry.db import Job, Proposal, SetRevision, TaskSet
from registry.local import LocalRegistry
from registry.web.render import add_page

NEWEST = 50


def routes(registry: LocalRegistry) -> APIRouter:
    """The page of proposals and background jobs."""

    def view(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            proposals = session.execute(
                select(Proposal, TaskSet.name, SetRevision.number)
                .join(TaskSet, TaskSet.id == Proposal.set_id)
                .join(SetRevision, SetRevision.id == Proposal.parent_id)
                .order_by(Proposal.id.desc())
                .limit(NEWEST)
            )
            jobs = session.scalars(select(Job).order_by(Job.id.desc()).limit(NEWEST))
            return {
                "title": "Refresh",
                "proposals": [
                    {
                        "id": proposal.id,
                        "set": name,
                        "parent": number,
                        "state": proposal.state,
                        "body": proposal.body,
                        "created_at": proposal.created_at,
                    }
                    for proposal, name, number in proposals
                ],
                "jobs": [
                    {
                        "id": job.id,
                        "kind": job.kind,
                        "state": job.state,
                        "progress": job.progress,
                        "error": job.error,
                        "created_at": job.created_at,
                    }
                    for job in jobs
                ],
            }

    router = APIRouter()
    add_page(router, "/refresh", "refresh.html", view)
    return router

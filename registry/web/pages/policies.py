"""Policies: who was measured, on how many tasks, and how those tasks stand for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request

from registry.db import Lineage
from registry.local import LocalRegistry
from registry.query.facets import status_counts
from registry.saturation.states import STATUSES
from registry.web.render import add_page

MOST = 200
"""Lineages on the page: the reference, then by name."""
MEASURED = [status for status in STATUSES if status not in {"draft", "checked"}]
"""States of tasks that were tried."""


def routes(registry: LocalRegistry) -> APIRouter:
    """The page of policy lineages."""

    def view(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            return {"title": "Policies", "policies": _policies(session)}

    router = APIRouter()
    add_page(router, "/policies", "policies.html", view)
    return router


def _policies(session: Session) -> list[dict[str, Any]]:
    measured = select(Lineage).where(Lineage.name != "", Lineage.episodes > 0)
    return [
        {
            "lineage": lineage.name,
            "reference": lineage.is_reference,
            "episodes": lineage.episodes,
            "graded": lineage.graded,
            "newest_version": lineage.newest_version,
            "last_seen": lineage.last_at,
            "tasks_by_state": [asdict(one) for one in status_counts(session, lineage.id) if one.status in MEASURED],
        }
        for lineage in session.scalars(measured.order_by(Lineage.is_reference.desc(), Lineage.name).limit(MOST))
    ]

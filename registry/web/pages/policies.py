"""Policies: who was measured, on how many tasks, and how those tasks stand for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from registry.db import Lineage, Outcome, Standing
from registry.local import LocalRegistry
from registry.web.render import add_page


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
    states: dict[int, dict[str, int]] = defaultdict(dict)
    counted = select(Standing.lineage_id, Standing.status, func.count()).where(Standing.n > 0)
    for lineage, status, number in session.execute(counted.group_by(Standing.lineage_id, Standing.status)):
        states[lineage][status] = number
    rows = session.execute(
        select(
            Lineage.id,
            Lineage.name,
            Lineage.is_reference,
            func.count(Outcome.id),
            func.count(Outcome.passed),
            func.max(Outcome.weight_version),
            func.max(Outcome.started_at),
        )
        .join(Outcome, Outcome.lineage_id == Lineage.id)
        .where(Lineage.name != "")
        .group_by(Lineage.id, Lineage.name, Lineage.is_reference)
        .order_by(Lineage.is_reference.desc(), Lineage.name)
    )
    return [
        {
            "lineage": name,
            "reference": reference,
            "episodes": episodes,
            "graded": graded,
            "newest_version": version,
            "last_seen": last,
            "tasks_by_state": states.get(number, {}),
        }
        for number, name, reference, episodes, graded, version, last in rows
    ]

"""Runs that sent outcomes: how many, of which class, and what they cost in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request

from registry.db import Run
from registry.local import LocalRegistry
from registry.web.render import add_page

NEWEST = 100


def routes(registry: LocalRegistry) -> APIRouter:
    """The page of runs."""

    def view(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            return {"title": "Runs", "runs": _runs(session)}

    router = APIRouter()
    add_page(router, "/runs", "runs.html", view)
    return router


def _runs(session: Session) -> list[dict[str, Any]]:
    return [_run(run) for run in session.scalars(select(Run).order_by(Run.id.desc()).limit(NEWEST))]


def _run(run: Run) -> dict[str, Any]:
    classes = {
        "model_success": run.successes,
        "model_failure": run.failures,
        "infra_failure": run.infra_failures,
        "unknown": run.unknown,
    }
    episodes = sum(classes.values())
    return {
        "name": run.name,
        "created_at": run.created_at,
        "episodes": episodes,
        "outcomes": {name: number for name, number in classes.items() if number},
        "mean_reward": run.reward_sum / run.graded if run.graded else None,
        "coverage": (run.successes + run.failures) / episodes if episodes else None,
    }

"""Runs that sent outcomes: how many, of which class, and what they cost in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from registry.db import Outcome, Run
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
    runs = session.scalars(select(Run).order_by(Run.id.desc()).limit(NEWEST)).all()
    classes: dict[int | None, dict[str, int]] = defaultdict(dict)
    ids = [run.id for run in runs]
    rows = session.execute(
        select(Outcome.run_id, Outcome.outcome_class, func.count())
        .where(Outcome.run_id.in_(ids))
        .group_by(Outcome.run_id, Outcome.outcome_class)
    )
    for run, outcome_class, number in rows:
        classes[run][outcome_class] = number
    means = select(Outcome.run_id, func.avg(Outcome.reward).label("reward")).where(
        Outcome.run_id.in_(ids), Outcome.passed.is_not(None)
    )
    rewards = {row.run_id: row.reward for row in session.execute(means.group_by(Outcome.run_id))}
    return [
        {
            "name": run.name,
            "created_at": run.created_at,
            "episodes": sum(classes[run.id].values()),
            "outcomes": classes[run.id],
            "mean_reward": rewards.get(run.id),
            "coverage": _coverage(classes[run.id]),
        }
        for run in runs
    ]


def _coverage(classes: Mapping[str, int]) -> float | None:
    total = sum(classes.values())
    graded = classes.get("model_success", 0) + classes.get("model_failure", 0)
    return graded / total if total else None

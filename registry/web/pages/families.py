"""Families: what each has drawn, how its levels went, and what a new draw of a level is predicted to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.calibration.intervals import wilson
from registry.db import Item, Standing
from registry.local import LocalRegistry
from registry.refresh.levels import BAND
from registry.refresh.proposal import level_model
from registry.web.membership import shown_lineage
from registry.web.render import add_page


def routes(registry: LocalRegistry) -> APIRouter:
    """The list of families, and one family with its levels."""

    def every_family(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            lineage, policy = shown_lineage(session, "")
            return {"title": "Families", "lineage": policy, "families": _families(session, lineage)}

    def one_family(request: Request) -> Mapping[str, Any]:
        name = request.path_params["name"]
        with registry.database.reading() as session:
            lineage, policy = shown_lineage(session, request.query_params.get("policy", ""))
            return {"title": name, "lineage": policy, "name": name, **_family(session, name, lineage)}

    router = APIRouter()
    add_page(router, "/families", "families.html", every_family)
    add_page(router, "/families/{name}", "family.html", one_family, parameters=("policy",))
    return router


def _families(session: Session, lineage: int) -> list[dict[str, Any]]:
    # Levels as text, in a query of its own: PostgreSQL groups by no JSON, and by no expression that holds a parameter.
    drawn = (
        select(Item.id, Item.family, Item.spec["level"].as_string().label("level")).where(Item.family != "").subquery()
    )
    rows = session.execute(
        select(
            drawn.c.family,
            func.count(),
            func.count(drawn.c.level.distinct()),
            func.sum(Standing.n),
            func.sum(Standing.k),
        )
        .outerjoin(Standing, (Standing.item_id == drawn.c.id) & (Standing.lineage_id == lineage))
        .group_by(drawn.c.family)
        .order_by(drawn.c.family)
    )
    return [
        {"name": name, "tasks": tasks, "levels": levels, "n": int(n or 0), "passes": int(passes or 0)}
        for name, tasks, levels, n, passes in rows
    ]


def _family(session: Session, name: str, lineage: int) -> dict[str, Any]:
    drawn = select(Item.id, Item.spec["level"].as_string().label("level")).where(Item.family == name).subquery()
    rows = session.execute(
        select(drawn.c.level, func.count(), func.sum(Standing.n), func.sum(Standing.k))
        .outerjoin(Standing, (Standing.item_id == drawn.c.id) & (Standing.lineage_id == lineage))
        .group_by(drawn.c.level)
    ).all()
    if not rows:
        raise UsageError(f"no task here is of the family {name!r}", code="no_such_family", hint="/families lists them")
    known = [json.loads(row[0] or "{}") for row in rows]
    model = level_model(session, name, lineage, levels=known)
    levels = []
    for level, (_, tasks, n, passes) in zip(known, rows, strict=True):
        predicted = model.predict(level)
        low, high = wilson(int(passes or 0), int(n)) if n else (None, None)
        levels.append(
            {
                "level": level,
                "tasks": tasks,
                "n": int(n or 0),
                "passes": int(passes or 0),
                "low": low,
                "high": high,
                "predicted": {"p": predicted.mean, "low": predicted.low, "high": predicted.high},
                "in_band": predicted.in_band,
            }
        )
    # The easiest first: knobs have no order of their own here, but what they do to the pass rate has.
    levels.sort(key=lambda row: -row["predicted"]["p"])
    return {"levels": levels, "learned_from": model.tasks, "band": list(BAND)}

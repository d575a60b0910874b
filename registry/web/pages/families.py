"""Families: how many tasks each has drawn, and what share of its episodes passed at each level."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from registry.db import Item, Lineage, Standing
from registry.local import LocalRegistry
from registry.web.render import add_page


def routes(registry: LocalRegistry) -> APIRouter:
    """The page of families."""

    def view(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            lineage = session.execute(select(Lineage.id, Lineage.name).where(Lineage.is_reference)).first()
            return {
                "title": "Families",
                "lineage": lineage.name if lineage else "",
                "families": _families(session, lineage.id if lineage else -1),
            }

    router = APIRouter()
    add_page(router, "/families", "families.html", view)
    return router


def _families(session: Session, lineage: int) -> list[dict[str, Any]]:
    # As text, in a query of its own: PostgreSQL groups by no JSON, and by no expression that holds a parameter.
    drawn = (
        select(Item.id, Item.family, Item.spec["level"].as_string().label("level")).where(Item.family != "").subquery()
    )
    rows = session.execute(
        select(drawn.c.family, drawn.c.level, func.count(), func.sum(Standing.n), func.sum(Standing.k))
        .outerjoin(Standing, (Standing.item_id == drawn.c.id) & (Standing.lineage_id == lineage))
        .group_by(drawn.c.family, drawn.c.level)
        .order_by(drawn.c.family, drawn.c.level)
    )
    families: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for family, level, tasks, n, passes in rows:
        families[family].append(
            {"level": json.loads(level or "{}"), "tasks": tasks, "n": int(n or 0), "passes": int(passes or 0)}
        )
    return [
        {"name": name, "tasks": sum(row["tasks"] for row in levels), "levels": levels}
        for name, levels in families.items()
    ]

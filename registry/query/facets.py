"""How many items are in each state: the counts beside a search box.

Counted to a bound along the index, since counting all of a large registry would cost more than the page.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, literal, select, union_all
from sqlalchemy.orm import Session

from registry.db import Standing
from registry.saturation.states import STATUSES

COUNT_TO = 1_000


@dataclass(frozen=True, slots=True)
class StatusCount:
    """Items of one lineage in one state; with ``more`` there are more than ``items``."""

    status: str
    items: int
    more: bool


def status_counts(session: Session, lineage_id: int) -> list[StatusCount]:
    """The states that occur, in the order of a task's life; exact up to 1,000."""
    rows = Standing.__table__.c
    bounded = [
        select(
            literal(status).label("status"),
            select(func.count())
            .select_from(
                select(rows.item_id)
                .where(rows.lineage_id == lineage_id, rows.status == status)
                .limit(COUNT_TO + 1)
                .subquery()
            )
            .scalar_subquery()
            .label("items"),
        )
        for status in STATUSES
    ]
    found = {row.status: row.items for row in session.execute(union_all(*bounded))}
    return [
        StatusCount(status, min(found[status], COUNT_TO), more=found[status] > COUNT_TO)
        for status in STATUSES
        if found[status]
    ]

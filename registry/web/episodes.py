"""A task's episodes, newest first, page by page: a page begins below the number of the last outcome before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import Outcome

PAGE_SIZE = 25


@dataclass(frozen=True, slots=True)
class EpisodePage:
    """``rows`` of one page; ``older`` begins the next one, `None` on the last."""

    rows: list[dict[str, Any]]
    older: int | None


def episodes_of(session: Session, item: int, *, before: int | None = None) -> EpisodePage:
    """The newest episodes of an item whose outcomes have numbers below ``before``; of all where that is `None`."""
    statement = select(Outcome).where(Outcome.item_id == item).order_by(Outcome.id.desc()).limit(PAGE_SIZE + 1)
    if before is not None:
        statement = statement.where(Outcome.id < before)
    found = session.scalars(statement).all()
    shown = found[:PAGE_SIZE]
    rows = [
        {
            "episode_id": row.episode_id,
            "outcome_class": row.outcome_class,
            "cause": row.cause,
            "reward": row.reward,
            "weight_version": row.weight_version,
            "seconds": row.seconds,
            "tokens": row.tokens,
            "started_at": row.started_at,
        }
        for row in shown
    ]
    return EpisodePage(rows, shown[-1].id if len(found) > PAGE_SIZE else None)

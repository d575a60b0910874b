"""What task-set revisions hold, with the estimates of one lineage: the rows and sums that several pages show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from sqlalchemy import case, exists, func, select
from sqlalchemy.orm import Session, aliased

from registry.db import Item, Lineage, SetItem, Standing
from registry.query.ast import Term
from registry.query.sql import find_lineage

_Z_90 = 1.6448536269514722


@dataclass(frozen=True, slots=True)
class Summary:
    """A revision at a glance.

    ``p``, ``low``, ``high``: mean pass rate of the ``measured`` tasks and its 90 % interval, from the sum of their
    posteriors' variances. ``broken``, ``flaky``, ``unchecked``: tasks whose verifier is not to be trusted now.
    """

    states: dict[str, int]
    measured: int
    p: float | None
    low: float | None
    high: float | None
    broken: int
    flaky: int
    unchecked: int


def shown_lineage(session: Session, policy: str) -> tuple[int, str]:
    """Id and name of the lineage that a page shows: the one asked for, else the reference.

    Raises:
        QueryError: there is no such policy.
    """
    number = find_lineage(session, Term("policy", (policy,)) if policy else None)
    return number, session.scalar(select(Lineage.name).where(Lineage.id == number)) or ""


def summaries(session: Session, revisions: Sequence[int], lineage: int) -> dict[int, Summary]:
    """A summary of each revision, in one query."""
    weight = Standing.prior_alpha + Standing.prior_beta + Standing.decayed_n + 1
    met = Standing.n > 0
    rows = session.execute(
        select(
            SetItem.revision_id,
            Standing.status,
            func.count(),
            func.sum(case((met, 1), else_=0)),
            func.sum(case((met, Standing.mean), else_=0.0)),
            func.sum(case((met, Standing.mean * (1 - Standing.mean) / weight), else_=0.0)),
            func.sum(case((Item.broken, 1), else_=0)),
            func.sum(case((Item.flaky, 1), else_=0)),
            func.sum(case((Item.verified != "checked", 1), else_=0)),
        )
        .join(Item, Item.id == SetItem.item_id)
        .outerjoin(Standing, (Standing.item_id == SetItem.item_id) & (Standing.lineage_id == lineage))
        .where(SetItem.revision_id.in_(revisions))
        .group_by(SetItem.revision_id, Standing.status)
    )
    of: dict[int, list[Any]] = {}
    for row in rows:
        of.setdefault(row[0], []).append(row)
    return {revision: _summary(of.get(revision, [])) for revision in revisions}


def _summary(rows: Sequence[Any]) -> Summary:
    measured, total, variance, broken, flaky, unchecked = (sum(row[place] for row in rows) for place in range(3, 9))
    mean = total / measured if measured else None
    half = _Z_90 * sqrt(variance) / measured if measured else 0.0
    return Summary(
        states={row[1] or "draft": row[2] for row in rows},
        measured=int(measured),
        p=mean,
        low=None if mean is None else max(0.0, mean - half),
        high=None if mean is None else min(1.0, mean + half),
        broken=int(broken),
        flaky=int(flaky),
        unchecked=int(unchecked),
    )


def members(
    session: Session,
    revision: int,
    lineage: int,
    *,
    after: int = -1,
    at_most: int,
    without: int | None = None,
) -> list[dict[str, Any]]:
    """Items of a revision in order, from the one after ordinal ``after``; only those not in ``without``."""
    statement = _rows(lineage).where(SetItem.revision_id == revision, SetItem.ordinal > after)
    if without is not None:
        statement = statement.where(~_is_in(without))
    return [_member(row) for row in session.execute(statement.order_by(SetItem.ordinal).limit(at_most))]


def count_without(session: Session, revision: int, without: int) -> int:
    """How many items of ``revision`` are not in ``without``."""
    statement = select(func.count()).select_from(SetItem).where(SetItem.revision_id == revision, ~_is_in(without))
    return session.scalar(statement) or 0


def _is_in(revision: int) -> Any:
    other = aliased(SetItem)
    return exists().where(other.revision_id == revision, other.item_id == SetItem.item_id)


def _rows(lineage: int) -> Any:
    return (
        select(SetItem.ordinal, Item.slug, Item.family, Item.task_digest, Item.verifier_digest, Standing)
        .join(Item, Item.id == SetItem.item_id)
        .outerjoin(Standing, (Standing.item_id == Item.id) & (Standing.lineage_id == lineage))
    )


def _member(row: Any) -> dict[str, Any]:
    standing: Standing | None = row.Standing
    met = standing is not None and standing.n > 0
    return {
        "ordinal": row.ordinal,
        "slug": row.slug,
        "family": row.family,
        "task_digest": row.task_digest,
        "verifier_digest": row.verifier_digest,
        "status": standing.status if standing else "draft",
        "p": standing.mean if standing and met else None,
        "low": standing.low if standing and met else None,
        "high": standing.high if standing and met else None,
        "n": standing.n if standing else 0,
    }

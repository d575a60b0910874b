"""Everything that is known of one item.

Its estimates per lineage, its reports, its state changes with their evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from envsdk.errors import UsageError
from registry.db import CheckReportRow, Item, Lineage, Standing, StateChange

_MOST = 50


@dataclass(frozen=True, slots=True)
class Estimate:
    """One lineage's estimate of an item."""

    policy: str
    status: str
    mean: float
    low: float
    high: float
    n: int
    ungraded: int
    e_value: float
    weight_version: int | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the audit trail; ``policy`` is empty for flags of the item alone."""

    policy: str
    before: str
    after: str
    reason: str
    position: int
    evidence: dict[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class ItemDetail:
    """One item. ``reports`` are the newest first, as `envsdk.checks.report.CheckReport` JSON."""

    slug: str
    task_digest: str
    verifier_digest: str
    family: str
    tags: tuple[str, ...]
    verified: str
    broken: bool
    flaky: bool
    package: str
    estimates: tuple[Estimate, ...]
    changes: tuple[Change, ...]
    reports: tuple[dict[str, Any], ...]


def find_items(session: Session, reference: str) -> list[ItemDetail]:
    """The items of a slug, or of a task digest or the first 8 or more digits of one; newest first.

    Raises:
        UsageError: there is none (``unknown_task``).
    """
    by_digest = re.fullmatch(r"[0-9a-f]{8,64}", reference) is not None
    condition = Item.task_digest.startswith(reference) if by_digest else Item.slug == reference
    items = session.scalars(select(Item).where(condition).order_by(Item.id.desc()).limit(_MOST)).all()
    if not items:
        raise UsageError(
            f"there is no task {reference!r}", code="unknown_task", hint="`envsdk registry query` lists what is there"
        )
    return [item_detail(session, item) for item in items]


def item_detail(session: Session, item: Item) -> ItemDetail:
    """The detail of one item."""
    names = {row.id: row.name for row in session.execute(select(Lineage.id, Lineage.name))}
    standings = session.scalars(select(Standing).where(Standing.item_id == item.id).order_by(Standing.lineage_id))
    changes = session.scalars(
        select(StateChange).where(StateChange.item_id == item.id).order_by(StateChange.id.desc()).limit(_MOST)
    )
    reports = session.scalars(
        select(CheckReportRow.report)
        .where(CheckReportRow.item_id == item.id)
        .order_by(CheckReportRow.id.desc())
        .limit(_MOST)
    )
    return ItemDetail(
        slug=item.slug,
        task_digest=item.task_digest,
        verifier_digest=item.verifier_digest,
        family=item.family,
        tags=tuple(item.tags),
        verified=item.verified,
        broken=item.broken,
        flaky=item.flaky,
        package=item.package,
        estimates=tuple(
            Estimate(
                policy=names[row.lineage_id],
                status=row.status,
                mean=row.mean,
                low=row.low,
                high=row.high,
                n=row.n,
                ungraded=row.ungraded,
                e_value=row.e_value,
                weight_version=row.weight_version,
                updated_at=row.updated_at,
            )
            for row in standings
        ),
        changes=tuple(
            Change(
                policy="" if row.lineage_id is None else names[row.lineage_id],
                before=row.before,
                after=row.after,
                reason=row.reason,
                position=row.position,
                evidence=row.evidence,
                at=row.at,
            )
            for row in changes
        ),
        reports=tuple(reports),
    )

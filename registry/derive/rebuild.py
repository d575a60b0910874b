"""Derive every estimate, state, flag and audit line again from what is primary, and say whether it came out so."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from registry.db import (
    CheckReportRow,
    Fit,
    Item,
    Lineage,
    Outcome,
    Policy,
    PriorRow,
    Retirement,
    Run,
    Standing,
    StandingTag,
    StateChange,
    VersionCount,
)
from registry.derive.events import Event, OutcomeEvent, PriorEvent, RetireEvent, report_event
from registry.derive.fold import fold
from registry.derive.lineages import fresh_standings
from registry.derive.tallies import recount
from registry.derive.versions import VersionCounts, forget
from registry.query.words import index_words

_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """``same``: the derived rows came out as they were."""

    outcomes: int
    standings: int
    same: bool


def rebuild(session: Session, *, heard: Callable[[int, int], None] = lambda _done, _total: None) -> Rebuilt:
    """Rebuild in the session's transaction: readers see the old state until it commits.

    Args:
        session: of a write transaction.
        heard: told (outcomes folded, outcomes in all) after each batch.
    """
    before = derived_digest(session)
    total = session.scalar(select(func.count()).select_from(Outcome)) or 0
    for table in (StateChange, StandingTag, Standing):
        session.execute(delete(table))
    session.execute(update(Item).values(verified="none", broken=False, flaky=False, ungraded_run=0))
    index_words(session)
    recount(session)
    for lineage in session.scalars(select(Lineage.id).order_by(Lineage.id)).all():
        fresh_standings(session, lineage)
    forget(session)
    versions = VersionCounts(session)
    batch: list[Event] = []
    done = 0
    for event in _all_events(session, versions):
        batch.append(event)
        done += isinstance(event, OutcomeEvent)
        if len(batch) >= _BATCH:
            fold(session, batch)
            batch = []
            heard(done, total)
    fold(session, batch)
    versions.write()
    heard(done, total)
    session.expire_all()
    standings = session.scalar(select(func.count()).select_from(Standing)) or 0
    return Rebuilt(total, standings, derived_digest(session) == before)


def _all_events(session: Session, versions: VersionCounts) -> Iterator[Event]:
    """Every event in the order in which it was folded (`registry.derive.events`)."""
    streams = (_outcomes(session, versions), _reports(session), _priors(session), _retirements(session))
    for _, event in heapq.merge(*streams, key=lambda keyed: keyed[0]):
        yield event


_Keyed = tuple[tuple[int, int, int], Event]


def _outcomes(session: Session, versions: VersionCounts) -> Iterator[_Keyed]:
    models = {row.id: row.model for row in session.execute(select(Policy.id, Policy.model))}
    last = 0
    while True:
        rows = session.execute(
            select(
                Outcome.id,
                Outcome.item_id,
                Outcome.lineage_id,
                Outcome.passed,
                Outcome.cause,
                Outcome.weight_version,
                Outcome.policy_id,
                Outcome.started_at,
                Outcome.run_id,
            )
            .where(Outcome.id > last)
            .order_by(Outcome.id)
            .limit(_BATCH)
        ).all()
        if not rows:
            return
        for row in rows:
            event = OutcomeEvent(
                item_id=row.item_id,
                lineage_id=row.lineage_id,
                position=row.id,
                passed=row.passed,
                cause=row.cause,
                weight_version=versions.counted(row.lineage_id, row.run_id, row.weight_version),
                agent=models[row.policy_id],
                at=row.started_at,
            )
            yield (row.id, 0, 0), event
        last = rows[-1].id


def _reports(session: Session) -> Iterator[_Keyed]:
    for row in session.scalars(select(CheckReportRow).order_by(CheckReportRow.position, CheckReportRow.id)):
        yield (row.position, 1, row.id), report_event(row.item_id, row.position, row.report, row.received_at)


def _priors(session: Session) -> Iterator[_Keyed]:
    rows = session.execute(
        select(PriorRow, Fit.created_at).join(Fit, Fit.id == PriorRow.fit_id).order_by(PriorRow.position, PriorRow.id)
    )
    for row, at in rows:
        event = PriorEvent(row.item_id, row.lineage_id, row.position, row.alpha, row.beta, at)
        yield (row.position, 2, row.id), event


def _retirements(session: Session) -> Iterator[_Keyed]:
    for row in session.scalars(select(Retirement).order_by(Retirement.position, Retirement.id)):
        event = RetireEvent(row.item_id, row.lineage_id, row.position, row.revision_id, row.e_value, row.at)
        yield (row.position, 3, row.id), event


_LINEAGE_TALLIES = ("id", "episodes", "graded", "newest_version", "last_at")
_RUN_TALLIES = ("id", "successes", "failures", "infra_failures", "unknown", "graded")
"""Counts alone: the sum of rewards depends on the order of adding in its last digits."""


def derived_digest(session: Session) -> str:
    """A digest of every derived row but the order of audit lines within one event, for comparing two states."""
    found = hashlib.sha256()
    flags = select(Item.id, Item.verified, Item.broken, Item.flaky, Item.ungraded_run).order_by(Item.id)
    standings = select(*Standing.__table__.c).order_by(Standing.lineage_id, Standing.item_id)
    tags = select(*StandingTag.__table__.c).order_by(StandingTag.lineage_id, StandingTag.item_id, StandingTag.tag_id)
    columns = [column for column in StateChange.__table__.c if column.name != "id"]
    changes = select(*columns).order_by(
        StateChange.position, StateChange.item_id, StateChange.lineage_id, StateChange.before, StateChange.after
    )
    lineages = select(*(Lineage.__table__.c[name] for name in _LINEAGE_TALLIES)).order_by(Lineage.id)
    runs = select(*(Run.__table__.c[name] for name in _RUN_TALLIES)).order_by(Run.id)
    counts = select(*VersionCount.__table__.c).order_by(VersionCount.lineage_id, VersionCount.run_id)
    for statement in (flags, standings, tags, changes, lineages, runs, counts):
        for row in session.execute(statement):
            found.update(json.dumps(list(row), sort_keys=True).encode())
    return found.hexdigest()

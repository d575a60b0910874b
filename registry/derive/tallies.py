"""How many outcomes each policy lineage and each run has: counted as they arrive, so that no page counts them all.

Derived: `recount` makes the same numbers from the outcomes. The sum of a run's rewards is added up in another order
then, and may differ in its last digits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import case, func, select, update
from sqlalchemy.orm import Session

from registry.db import Lineage, Outcome, OutcomeRow, Run

_CLASSES = {
    "model_success": "successes",
    "model_failure": "failures",
    "infra_failure": "infra_failures",
    "unknown": "unknown",
}
"""The column of a run that counts each class."""
_NOTHING: dict[str, Any] = {"graded": 0, "reward_sum": 0.0} | dict.fromkeys(_CLASSES.values(), 0)


def count_in(session: Session, rows: Sequence[OutcomeRow]) -> None:
    """Count new rows of the table ``outcome``. Must run in the transaction that inserts them."""
    lineages: dict[int, list[OutcomeRow]] = defaultdict(list)
    runs: dict[int, list[OutcomeRow]] = defaultdict(list)
    for row in rows:
        if row.lineage_id is not None:
            lineages[row.lineage_id].append(row)
        if row.run_id is not None:
            runs[row.run_id].append(row)
    for lineage, mine in lineages.items():
        _count_lineage(session, lineage, mine)
    for run, mine in runs.items():
        _count_run(session, run, mine)


def recount(session: Session) -> None:
    """Count everything again. Reads every outcome."""
    session.execute(update(Lineage).values(episodes=0, graded=0, newest_version=None, last_at=None))
    session.execute(update(Run).values(**_NOTHING))
    for lineage in session.execute(_BY_LINEAGE).mappings():
        values = {name: value for name, value in lineage.items() if name != "lineage_id"}
        session.execute(update(Lineage).where(Lineage.id == lineage["lineage_id"]).values(**values))
    for run in session.execute(_BY_RUN).mappings():
        values = {name: value for name, value in run.items() if name != "run_id"}
        session.execute(update(Run).where(Run.id == run["run_id"]).values(**values))


def stale(session: Session) -> list[tuple[str, str]]:
    """(kind, name) of every lineage and run whose numbers are not those of its outcomes. Reads every outcome."""
    counted = {row["lineage_id"]: tuple(row.values())[1:] for row in session.execute(_BY_LINEAGE).mappings()}
    runs = {row["run_id"]: tuple(row.values())[1:-1] for row in session.execute(_BY_RUN).mappings()}
    found = []
    for lineage in session.scalars(select(Lineage).order_by(Lineage.id)):
        kept = (lineage.episodes, lineage.graded, lineage.newest_version, lineage.last_at)
        if kept != counted.get(lineage.id, (0, 0, None, None)):
            found.append(("lineage", lineage.name))
    for run in session.scalars(select(Run).order_by(Run.id)):
        kept_run = tuple(getattr(run, name) for name in (*_CLASSES.values(), "graded"))
        if kept_run != runs.get(run.id, (0,) * len(kept_run)):
            found.append(("run", run.name))
    return found


_BY_LINEAGE = (
    select(
        Outcome.lineage_id,
        func.count().label("episodes"),
        func.count(Outcome.passed).label("graded"),
        func.max(Outcome.weight_version).label("newest_version"),
        func.max(Outcome.started_at).label("last_at"),
    )
    .where(Outcome.lineage_id.is_not(None))
    .group_by(Outcome.lineage_id)
)
_BY_RUN = (
    select(
        Outcome.run_id,
        *(func.sum(case((Outcome.outcome_class == name, 1), else_=0)).label(to) for name, to in _CLASSES.items()),
        func.count(Outcome.passed).label("graded"),
        func.sum(case((Outcome.passed.is_not(None), func.coalesce(Outcome.reward, 0.0)), else_=0.0)).label(
            "reward_sum"
        ),
    )
    .where(Outcome.run_id.is_not(None))
    .group_by(Outcome.run_id)
)


def _count_lineage(session: Session, lineage: int, rows: Sequence[OutcomeRow]) -> None:
    newest, last = max(row.weight_version for row in rows), max(row.started_at for row in rows)
    session.execute(
        update(Lineage)
        .where(Lineage.id == lineage)
        .values(
            episodes=Lineage.episodes + len(rows),
            graded=Lineage.graded + sum(row.passed is not None for row in rows),
            newest_version=case((Lineage.newest_version > newest, Lineage.newest_version), else_=newest),
            last_at=case((Lineage.last_at > last, Lineage.last_at), else_=last),
        )
    )


def _count_run(session: Session, run: int, rows: Sequence[OutcomeRow]) -> None:
    counts = Counter(row.outcome_class for row in rows)
    values: dict[str, Any] = {to: getattr(Run, to) + counts[name] for name, to in _CLASSES.items()}
    graded = [row for row in rows if row.passed is not None]
    values["graded"] = Run.graded + len(graded)
    values["reward_sum"] = Run.reward_sum + sum(row.reward or 0.0 for row in graded)
    session.execute(update(Run).where(Run.id == run).values(**values))

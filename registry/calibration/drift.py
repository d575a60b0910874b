"""Too good, too fast: tasks that moved between two versions of a policy while their neighbours did not.

A task that suddenly passes while tasks as hard as it stay where they were is seldom learned: an answer leaked, a
history was left in the image, a verifier changed. Its traces want a reader. Rates are compared as angles
arcsin(sqrt((k + 3/8) / (n + 3/4))), whose variance 1 / (4 n + 2) hardly depends on the rate (Anscombe 1948); on the
logit scale a task that came to pass always would have a standard error too wide to be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session

from envsdk.errors import UsageError
from registry.bulk import is_one_of
from registry.calibration.rasch import Floats
from registry.db import Difficulty, Fit, Item, Lineage, Outcome

DRIFT_SE = 4.0
"""A task drifted when it moved by more than this many standard errors more than its neighbours."""
_NEIGHBOURS = 8
_TRACES = 3

Tally = tuple[int, int]
"""Passes of graded outcomes."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A task that moved alone.

    ``moved``: its change less the median change of its neighbours, in standard errors of its own change.
    ``episodes``: ids of the newest episodes behind it, for whoever reads its traces.
    """

    slug: str
    task_digest: str
    verifier_digest: str
    before: Tally
    after: Tally
    moved: float
    episodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """``since``: the first weight version of the later side; `None` where two lineages were compared."""

    since: int | None
    tasks: int
    drifted: tuple[Drift, ...]


def alone(before: Floats, after: Floats, se: Floats, difficulty: Floats) -> Floats:
    """[J] how many standard errors each task moved more than the median of its eight nearest neighbours in difficulty.

    Args:
        before: [J] pass rates at one version, on any scale.
        after: [J] at another.
        se: [J] standard errors of the differences.
        difficulty: [J] b of the tasks, which says who is whose neighbour.
    """
    move = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    hard = np.asarray(difficulty, dtype=np.float64)
    order = np.argsort(hard, kind="stable")
    found = np.zeros(len(move))
    for place, task in enumerate(order):
        near = [other for other in order[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS + 1] if other != task]
        near = sorted(near, key=lambda other: abs(hard[other] - hard[task]))[:_NEIGHBOURS]
        if near:
            found[task] = (move[task] - np.median(move[near])) / se[task]
    return found


def drifted(before: Sequence[float], after: Sequence[float], se: Sequence[float], b: Sequence[float]) -> list[int]:
    """Places of the tasks that moved by more than four standard errors against their neighbours; see `alone`."""
    moved = alone(*(np.asarray(values, dtype=np.float64) for values in (before, after, se, b)))
    return [int(place) for place in np.flatnonzero(np.abs(moved) > DRIFT_SE)]


def angles(passes: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Pass rates as angles, and the variances of those."""
    return np.arcsin(np.sqrt((passes + 0.375) / (trials + 0.75))), 1.0 / (4.0 * trials + 2.0)


def find_drift(session: Session, lineage: str, *, since: int | None = None, against: str = "") -> Compared:
    """Tasks of ``lineage`` that moved alone, against its own earlier weight versions or against another lineage.

    Args:
        session: of an open registry.
        lineage: a whole name.
        since: first weight version of the later side; the one that halves the graded outcomes where `None`.
        against: the lineage that ``lineage`` is compared with, all versions of both.

    Raises:
        UsageError: a lineage is not here (``unknown_policy``), or it has one weight version only (``one_version``).
    """
    mine = _lineage(session, lineage)
    if against:
        since = None
        sides = (Outcome.lineage_id == _lineage(session, against), Outcome.lineage_id == mine)
    else:
        since = _halving(session, mine, lineage) if since is None else since
        own = Outcome.lineage_id == mine
        sides = (own & (Outcome.weight_version < since), own & (Outcome.weight_version >= since))
    before, after = (_tallies(session, side) for side in sides)
    both = sorted(before.keys() & after.keys())
    if not both:
        return Compared(since, 0, ())
    was, was_var = angles(*_columns(before, both))
    now, now_var = angles(*_columns(after, both))
    moved = alone(was, now, np.sqrt(was_var + now_var), _difficulties(session, both, otherwise=-was))
    drifts = []
    for place in np.argsort(-np.abs(moved), kind="stable"):
        if abs(moved[place]) > DRIFT_SE:
            item, by = both[place], float(moved[place])
            names = session.execute(_NAMES.where(Item.id == item)).one()
            traces = tuple(session.scalars(_traces(item, sides[1], passed=by > 0)))
            drifts.append(Drift(*names, before[item], after[item], by, traces))
    return Compared(since, len(both), tuple(drifts))


_NAMES = select(Item.slug, Item.task_digest, Item.verifier_digest)


def _traces(item: int, side: ColumnElement[bool], *, passed: bool) -> Select[str]:
    mine = select(Outcome.episode_id).where(side, Outcome.item_id == item, Outcome.passed == passed)
    return mine.order_by(Outcome.id.desc()).limit(_TRACES)


def _lineage(session: Session, name: str) -> int:
    found = session.scalar(select(Lineage.id).where(Lineage.name == name))
    if found is None:
        raise UsageError(f"no outcomes of a policy {name!r}", code="unknown_policy", hint="calibrate it first")
    return found


def _halving(session: Session, lineage_id: int, name: str) -> int:
    rows = session.execute(
        select(Outcome.weight_version, func.count())
        .where(Outcome.lineage_id == lineage_id, Outcome.passed.is_not(None))
        .group_by(Outcome.weight_version)
        .order_by(Outcome.weight_version)
    ).all()
    if len(rows) < 2:
        raise UsageError(
            f"the outcomes of {name!r} are all of one weight version",
            code="one_version",
            hint="compare with another policy: --against NAME",
        )
    counts = np.cumsum([count for _, count in rows])
    half = int(np.searchsorted(counts, counts[-1] / 2.0)) + 1
    return int(rows[min(half, len(rows) - 1)][0])


def _tallies(session: Session, side: ColumnElement[bool]) -> dict[int, Tally]:
    passes = func.sum(case((Outcome.passed.is_(True), 1), else_=0))
    rows = session.execute(
        select(Outcome.item_id, passes, func.count()).where(side, Outcome.passed.is_not(None)).group_by(Outcome.item_id)
    )
    return {item: (int(k), int(n)) for item, k, n in rows}


def _columns(tallies: Mapping[int, Tally], items: Sequence[int]) -> tuple[Floats, Floats]:
    k, n = np.array([tallies[item] for item in items], dtype=np.float64).T
    return k, n


def _difficulties(session: Session, items: Sequence[int], *, otherwise: Floats) -> Floats:
    """Difficulties by the newest fit that knows all of ``items``, else what the earlier side says."""
    newest = session.scalar(select(func.max(Fit.id)))
    if newest is None:
        return otherwise
    rows = session.execute(
        select(Difficulty.item_id, Difficulty.b).where(
            Difficulty.fit_id == newest, is_one_of(session, Difficulty.item_id, items)
        )
    )
    known = {row.item_id: row.b for row in rows}
    return np.array([known[item] for item in items]) if len(known) == len(items) else otherwise

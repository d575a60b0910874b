"""What a refresh would do to a set, with its reasons, before anything is drawn or changed.

Out go tasks that the policy has saturated, by e-BH over the whole set at a false discovery rate of 5 %, and tasks
whose verifier is broken. For each a replacement of the same family is planned, at a level whose predicted pass rate
lies in the band. Tasks that are too hard stay: the model may grow into them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from envsdk.authoring.families import Family
from envsdk.errors import UsageError
from registry.db import Item, Lineage, SetItem, SetRevision, Standing, TaskSet
from registry.query.ast import Term
from registry.query.sql import find_lineage
from registry.refresh.levels import BAND, Guess, Level, LevelModel, Prediction, Seen, fit_levels, no_guess
from registry.revisions import find_revision
from registry.saturation.eprocess import e_bh

_WEIGHED = ("saturating", "saturated", "retired")
_LEVELS_A_FAMILY = 3


@dataclass(frozen=True, slots=True)
class Retire:
    """A task that goes, and why: ``saturated`` or ``broken``."""

    item_id: int
    slug: str
    task_digest: str
    verifier_digest: str
    family: str
    why: str
    e_value: float
    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A replacement to draw.

    ``why``: ``in_band`` or ``nearest_to_band``, by outcomes; without any, ``authors_guess`` (the family's
    ``predicted_pass``) or ``no_outcomes`` (every level looks alike).
    """

    family: str
    level: dict[str, Any]
    predicted: Prediction
    why: str
    learned_from: int


@dataclass(frozen=True, slots=True)
class NotPlanned:
    """A retired task without a replacement: ``no_family`` or ``family_not_installed``."""

    slug: str
    family: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A refresh before it is carried out."""

    set_name: str
    revision: int
    revision_id: int
    set_id: int
    lineage: str
    lineage_id: int
    retire: tuple[Retire, ...]
    draw: tuple[Planned, ...]
    not_planned: tuple[NotPlanned, ...]
    kept: tuple[int, ...]


def plan_refresh(
    session: Session, reference: str, *, lineage: str = "", families: Mapping[str, Family] | None = None
) -> Plan:
    """Plan a refresh of a set's latest revision for a policy lineage (the reference, where empty).

    Args:
        session: of an open registry.
        reference: the set's name.
        lineage: whose saturation counts.
        families: what replacements can be drawn from.

    Raises:
        UsageError: there is no such set, or nothing was ever measured for that lineage.
    """
    revision = find_revision(session, reference)
    lineage_id = find_lineage(session, Term("policy", (lineage,)) if lineage else None)
    name = session.scalar(select(Lineage.name).where(Lineage.id == lineage_id)) or ""
    if not name:
        raise UsageError(
            "no policy was measured yet", code="unknown_policy", hint="`envsdk registry calibrate` does it"
        )
    rows = session.execute(
        select(Item, Standing)
        .join(SetItem, SetItem.item_id == Item.id)
        .join(Standing, Standing.item_id == Item.id)
        .where(SetItem.revision_id == revision.id, Standing.lineage_id == lineage_id)
        .order_by(SetItem.ordinal)
    ).all()
    retire = _to_retire([(row.Item, row.Standing) for row in rows])
    gone = {one.item_id for one in retire}
    draw, not_planned = _replacements(session, retire, lineage_id, families or {})
    set_name = session.scalar(select(TaskSet.name).where(TaskSet.id == revision.set_id)) or ""
    return Plan(
        set_name=set_name,
        revision=revision.number,
        revision_id=revision.id,
        set_id=revision.set_id,
        lineage=name,
        lineage_id=lineage_id,
        retire=retire,
        draw=draw,
        not_planned=not_planned,
        kept=tuple(row.Item.id for row in rows if row.Item.id not in gone),
    )


def _to_retire(rows: Sequence[tuple[Item, Standing]]) -> tuple[Retire, ...]:
    # Only a process that runs weighs: one that ended when the posterior left `saturating` is no evidence any more.
    e_values = [standing.e_value if standing.phase in _WEIGHED else 0.0 for _, standing in rows]
    saturated = set(e_bh(e_values))
    found = []
    for place, (item, standing) in enumerate(rows):
        if place in saturated or item.broken:
            found.append(
                Retire(
                    item_id=item.id,
                    slug=item.slug,
                    task_digest=item.task_digest,
                    verifier_digest=item.verifier_digest,
                    family=item.family,
                    why="broken" if item.broken else "saturated",
                    e_value=e_values[place],
                    mean=standing.mean,
                    low=standing.low,
                    high=standing.high,
                    n=standing.n,
                )
            )
    return tuple(found)


def _replacements(
    session: Session, retire: Sequence[Retire], lineage_id: int, families: Mapping[str, Family]
) -> tuple[tuple[Planned, ...], tuple[NotPlanned, ...]]:
    planned: list[Planned] = []
    missing = [
        NotPlanned(one.slug, one.family, "family_not_installed" if one.family else "no_family")
        for one in retire
        if one.family not in families
    ]
    wanted = Counter(one.family for one in retire if one.family in families)
    for name, count in sorted(wanted.items()):
        planned += plan_draws(session, families[name], count, lineage_id)
    return tuple(planned), tuple(missing)


def plan_draws(session: Session, family: Family, count: int, lineage_id: int) -> list[Planned]:
    """``count`` draws of a family, at the levels that the lineage's outcomes so far speak for."""
    levels = list(family.settings())
    guess = _guess_of(family)
    model = level_model(session, family.name, lineage_id, levels=levels, guess=guess)
    choices = choose_levels(model, levels, guess=guess)
    return [
        Planned(family.name, dict(level), prediction, why, model.tasks)
        for level, prediction, why in (choices[place % len(choices)] for place in range(count))
    ]


def _guess_of(family: Family) -> Guess:
    def guess(level: Level) -> float | None:
        try:
            return family.predicted_pass(level)
        except UsageError:  # a task here was drawn at a level that the family has no more
            return None

    return guess


def level_model(
    session: Session, family: str, lineage_id: int, *, levels: Sequence[Level], guess: Guess = no_guess
) -> LevelModel:
    """What the lineage's outcomes say about a family's ``levels``; ``guess`` is its author's of the pass rate there."""
    rows = session.execute(
        select(Item.spec, Standing.decayed_k, Standing.decayed_n)
        .join(Standing, Standing.item_id == Item.id)
        .where(Item.family == family, Standing.lineage_id == lineage_id, Standing.n > 0, Item.broken.is_(False))
    )
    seen = [Seen(row.spec.get("level", {}), row.decayed_k, row.decayed_n) for row in rows]
    return fit_levels(seen, levels=levels, guess=guess)


def choose_levels(
    model: LevelModel, levels: Sequence[Level], *, guess: Guess = no_guess
) -> list[tuple[Level, Prediction, str]]:
    """Up to three levels, those likeliest to give a task in the band first; the nearest where none's mean is in it.

    Where no outcome says anything yet, those that ``guess`` puts nearest to the middle of the band come first.
    """
    predicted = [(level, model.predict(level)) for level in levels]
    if not model.tasks:
        guessed = [(abs(rate - sum(BAND) / 2), pair) for pair in predicted if (rate := guess(pair[0])) is not None]
        if guessed:
            predicted = [pair for _, pair in sorted(guessed, key=lambda one: one[0])]
        why = "authors_guess" if guessed else "no_outcomes"
        return [(*pair, why) for pair in predicted[:_LEVELS_A_FAMILY]]
    predicted.sort(key=lambda pair: -pair[1].in_band)
    good = [pair for pair in predicted if BAND[0] <= pair[1].mean <= BAND[1]]
    if good:
        return [(level, prediction, "in_band") for level, prediction in good[:_LEVELS_A_FAMILY]]
    level, prediction = predicted[0]
    return [(level, prediction, "nearest_to_band")]


def latest_id(session: Session, set_id: int) -> int | None:
    """Id of a set's newest revision that was not deleted."""
    return session.scalar(
        select(SetRevision.id)
        .where(SetRevision.set_id == set_id, SetRevision.deleted_at.is_(None))
        .order_by(SetRevision.number.desc())
        .limit(1)
    )

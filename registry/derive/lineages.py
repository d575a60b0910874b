"""Policy lineages: a model and what was trained from it, and the standings that a new one begins with.

The first lineage measured becomes the reference that pages show; one of which nothing was ever graded, say of a server
that was down, gives way to the next that comes. Agents that generate nothing (oracle, noop) are no
lineage: they say something about the verifier, nothing about difficulty.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Select, case, insert, literal, select, update
from sqlalchemy.orm import Session

from envsdk.errors import UsageError
from registry.db import Item, ItemTag, Lineage, Outcome, Standing, StandingTag
from registry.saturation.posterior import DEFAULT_PRIOR, interval, learnability

NO_POLICY = frozenset({"oracle", "noop", "script", "answer"})
UNCLAIMED = ""
"""Name of the reference lineage until the first policy is measured."""

_LOW, _HIGH = interval(DEFAULT_PRIOR)
FRESH: dict[str, Any] = {
    "phase": "checked",
    "mean": DEFAULT_PRIOR.mean,
    "low": _LOW,
    "high": _HIGH,
    "learnability": learnability(DEFAULT_PRIOR),
    "n": 0,
    "k": 0,
    "ungraded": 0,
    "prior_alpha": DEFAULT_PRIOR.alpha,
    "prior_beta": DEFAULT_PRIOR.beta,
    "decayed_n": 0.0,
    "decayed_k": 0.0,
    "weight_version": None,
    "e_value": 1.0,
    "cusum": 0.0,
    "folded_to": 0,
}
"""A standing before any outcome."""


def lineage_name(policy: dict[str, Any]) -> str | None:
    """The lineage of a policy's identity, or `None` where it is no policy, or one that has no name."""
    name = str(policy.get("lineage") or policy["model"])
    return None if not name or name in NO_POLICY else name


def ensure_reference(session: Session) -> int:
    """Id of the reference lineage, which exists from the first push on."""
    found = session.scalar(select(Lineage.id).where(Lineage.is_reference))
    if found is not None:
        return found
    row = Lineage(name=UNCLAIMED, is_reference=True, created_at=time.time())
    session.add(row)
    session.flush()
    return row.id


def ensure_lineage(session: Session, name: str) -> int:
    """Id of the lineage ``name``; a new one starts with a standing for every item."""
    found = session.scalar(select(Lineage.id).where(Lineage.name == name))
    if found is not None:
        return found
    reference = ensure_reference(session)
    claimed = session.execute(
        update(Lineage).where(Lineage.id == reference, Lineage.name == UNCLAIMED).values(name=name)
    )
    if claimed.rowcount:  # type: ignore[attr-defined]
        return reference
    row = Lineage(name=name, is_reference=False, created_at=time.time())
    session.add(row)
    session.flush()
    fresh_standings(session, row.id)
    if _came_to_nothing(session, reference):
        session.execute(update(Lineage).values(is_reference=Lineage.id == row.id))
    return row.id


def _came_to_nothing(session: Session, lineage_id: int) -> bool:
    """Whether a lineage has outcomes, and none of them was graded."""
    outcomes = select(Outcome.id).where(Outcome.lineage_id == lineage_id).limit(1)
    if session.scalar(outcomes) is None:
        return False
    return session.scalar(outcomes.where(Outcome.passed.is_not(None))) is None


def reference_name(session: Session) -> str:
    """Name of the reference lineage; empty until a policy was measured."""
    return session.scalar(select(Lineage.name).where(Lineage.is_reference)) or UNCLAIMED


def set_reference(session: Session, name: str) -> None:
    """Make ``name`` the lineage that pages show.

    Raises:
        UsageError: nothing was measured for it yet (``unknown_policy``).
    """
    found = session.scalar(select(Lineage.id).where(Lineage.name == name))
    if found is None:
        raise UsageError(f"no outcomes of a policy {name!r}", code="unknown_policy", hint="calibrate it first")
    session.execute(update(Lineage).values(is_reference=Lineage.id == found))


def fresh_standings(session: Session, lineage_id: int, *, items: Select[Any] | None = None) -> None:
    """Give every item, or those that ``items`` selects by id, a standing before any outcome for one lineage."""
    status = case((Item.verified == "checked", "checked"), else_="draft")
    columns = ["lineage_id", "item_id", "status", *FRESH, "updated_at"]
    fresh = [literal(value, Standing.__table__.c[name].type) for name, value in FRESH.items()]
    values = select(literal(lineage_id), Item.id, status, *fresh, Item.created_at)
    index = [literal(FRESH[name]) for name in ("learnability", "mean")]
    tagged = select(literal(lineage_id), ItemTag.item_id, ItemTag.tag_id, status, *index).join(
        Item, Item.id == ItemTag.item_id
    )
    if items is not None:
        values, tagged = values.where(Item.id.in_(items)), tagged.where(Item.id.in_(items))
    session.execute(insert(Standing).from_select(columns, values))
    session.execute(
        insert(StandingTag).from_select(["lineage_id", "item_id", "tag_id", "status", "learnability", "mean"], tagged)
    )

"""Publish or dismiss a proposal. Publishing makes a new revision; the old ones stay as they are and stay runnable."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from envsdk.errors import UsageError
from registry.db import Item, Outcome, Proposal, Retirement, SetRevision, TaskSet
from registry.derive.events import RetireEvent
from registry.derive.fold import fold
from registry.refresh.proposal import latest_id
from registry.revisions import add_revision, entries_of, set_digest

_NAME_LENGTH: int = Proposal.__table__.c.decided_by.type.length  # type: ignore[attr-defined]


def publish_proposal(session: Session, number: int, *, by: str) -> SetRevision:
    """Make the proposal's revision; ``by`` says who decided so. Must run in a write transaction.

    Raises:
        UsageError: there is no such open proposal, or the set has a newer revision than it speaks of
            (``stale_proposal``).
    """
    proposal = _open_proposal(session, number)
    if latest_id(session, proposal.set_id) != proposal.parent_id:
        raise UsageError(
            f"proposal {number} is about an older revision", code="stale_proposal", hint="propose a refresh again"
        )
    body = proposal.body
    wanted = [*body["kept"], *(one["item_id"] for one in body["add"])]
    items = {item.id: item for item in session.scalars(select(Item).where(Item.id.in_(wanted)))}
    # What was to be kept or added may have broken since; nothing is published on hope.
    sound = {item.id for item in items.values() if item.verified == "checked" and not item.broken}
    ids = [item_id for item_id in wanted if item_id in sound]
    left_out = [items[item_id].slug for item_id in wanted if item_id not in sound]
    if not ids:
        raise UsageError(
            f"proposal {number} would leave the set empty",
            code="empty_set",
            hint="dismiss it, and check its tasks again: drafts and broken tasks enter no set",
        )
    name = session.scalar(select(TaskSet.name).where(TaskSet.id == proposal.set_id))
    parent = session.get(SetRevision, proposal.parent_id)
    assert name is not None and parent is not None, "foreign keys hold"  # noqa: PT018 - one fact
    revision = add_revision(
        session,
        name,
        ids,
        digest=set_digest(entries_of(session, ids)),
        query=parent.query,
        lineage_id=proposal.lineage_id,
        parent=parent,
        note={"proposal": number, "left_out": left_out}
        | {key: body[key] for key in ("policy", "retire", "add", "not_replaced")},
    )
    _retire(session, proposal, revision, body["retire"])
    proposal.revision_id = revision.id
    _decide(proposal, "published", by)
    return revision


def dismiss_proposal(session: Session, number: int, *, by: str) -> None:
    """Close a proposal without doing it; ``by`` says who decided so. Raises as `publish_proposal` does."""
    _decide(_open_proposal(session, number), "dismissed", by)


def _decide(proposal: Proposal, state: str, by: str) -> None:
    proposal.state, proposal.decided_by, proposal.decided_at = state, by[:_NAME_LENGTH], time.time()


def _open_proposal(session: Session, number: int) -> Proposal:
    proposal = session.get(Proposal, number)
    if proposal is None:
        raise UsageError(
            f"there is no proposal {number}", code="unknown_proposal", hint="/refresh lists them, in the web registry"
        )
    if proposal.state != "open":
        raise UsageError(
            f"proposal {number} is {proposal.state}",
            code="closed_proposal",
            hint="ask for a new one: `envsdk registry refresh`",
        )
    return proposal


def _retire(session: Session, proposal: Proposal, revision: SetRevision, retire: list[dict[str, Any]]) -> None:
    position = session.scalar(select(func.max(Outcome.id))) or 0
    now = time.time()
    saturated = [one for one in retire if one["why"] == "saturated"]
    for one in saturated:
        session.add(
            Retirement(
                item_id=one["item_id"],
                lineage_id=proposal.lineage_id,
                revision_id=revision.id,
                position=position,
                e_value=one["e_value"],
                at=now,
            )
        )
    session.flush()
    fold(
        session,
        [
            RetireEvent(one["item_id"], proposal.lineage_id, position, revision.id, one["e_value"], now)
            for one in saturated
        ],
    )

"""Pin a query to a task-set revision.

Only items with a complete, passing check report enter (law 9), and none that is broken; what was left out is said,
with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.bulk import is_one_of
from registry.db import Item, TaskSet
from registry.derive.fold import chunks
from registry.query import Query, parse
from registry.query.page import matching_ids
from registry.query.saved import expanded
from registry.query.sql import find_lineage
from registry.revisions import (
    SetEntry,
    add_revision,
    entries_of,
    find_revision,
    latest_revision,
    normal_name,
    revision_entries,
    set_digest,
)

MAX_SET = 100_000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A match that did not enter, and why: ``draft``, ``broken``."""

    slug: str
    task_digest: str
    why: str


@dataclass(frozen=True, slots=True)
class TaskSetRevision:
    """One immutable list of items, in the order that its query gave them.

    ``left_out`` is about the call that made or found it, not part of the revision.
    """

    name: str
    revision: int
    digest: str
    items: tuple[SetEntry, ...]
    query: str = ""
    left_out: tuple[LeftOut, ...] = field(default=(), compare=False)


def resolve_query(session: Session, text: str, *, name: str = "") -> TaskSetRevision:
    """Pin ``text`` to a revision of the set ``name``; a new revision only where the latest differs.

    Without a name the set is called ``q-`` and the first 12 digits of its digest, and has one revision. A query that
    matches nothing resolves to no revision: number 0, no items, nothing stored.
    """
    query = expanded(session, parse(text))
    ids, left_out = _admissible(session, query)
    lineage = find_lineage(session, query.policy)
    entries = entries_of(session, ids)
    if not entries:
        return TaskSetRevision(name, 0, set_digest(()), (), str(query), left_out)
    digest = set_digest(entries)
    normal = normal_name(name) if name else f"q-{digest[:12]}"
    latest = latest_revision(session, normal)
    if latest is not None and latest.digest == digest:
        return TaskSetRevision(normal, latest.number, digest, entries, latest.query, left_out)
    revision = add_revision(session, normal, ids, digest=digest, query=str(query), lineage_id=lineage, parent=latest)
    return TaskSetRevision(normal, revision.number, digest, entries, str(query), left_out)


@dataclass(frozen=True, slots=True)
class SetDiff:
    """What one revision has and the other has not; ``kept`` counts what both have."""

    added: tuple[SetEntry, ...]
    removed: tuple[SetEntry, ...]
    kept: int


def compare(before: TaskSetRevision, after: TaskSetRevision) -> SetDiff:
    """The difference of two revisions, each side in its own order."""
    old = {(item.task_digest, item.verifier_digest) for item in before.items}
    new = {(item.task_digest, item.verifier_digest) for item in after.items}
    return SetDiff(
        added=tuple(item for item in after.items if (item.task_digest, item.verifier_digest) not in old),
        removed=tuple(item for item in before.items if (item.task_digest, item.verifier_digest) not in new),
        kept=len(old & new),
    )


def load_revision(session: Session, reference: str) -> TaskSetRevision:
    """The revision that ``reference`` names, with its items. Raises as `find_revision` does."""
    found = find_revision(session, reference)
    name = session.scalar(select(TaskSet.name).where(TaskSet.id == found.set_id)) or ""
    return TaskSetRevision(name, found.number, found.digest, revision_entries(session, found.id), found.query)


def _admissible(session: Session, query: Query) -> tuple[list[int], tuple[LeftOut, ...]]:
    wanted = MAX_SET if query.limit is None else query.limit
    # What is left out must not use up the query's limit, so the limit is applied after the door.
    unlimited = Query(query.terms, query.policy, query.sort)
    ids = matching_ids(session, unlimited, at_most=MAX_SET)
    bad: dict[int, LeftOut] = {}
    for some in chunks(ids):
        for row in session.execute(
            select(Item.id, Item.slug, Item.task_digest, Item.verified, Item.broken).where(
                is_one_of(session, Item.id, some), (Item.verified != "checked") | Item.broken
            )
        ):
            bad[row.id] = LeftOut(row.slug, row.task_digest, "broken" if row.broken else "draft")
    good = [item for item in ids if item not in bad][:wanted]
    return good, tuple(bad[item] for item in ids if item in bad)

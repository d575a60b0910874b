"""Revisions of task sets: immutable lists of items, how they are named, found and digested.

A revision's digest is sha256 over the canonical JSON of its sorted list of ``[task digest, verifier digest]``: two
registries that hold the same tasks give a set the same digest, whatever the order.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from envsdk.digest import canonical, sha256_hex
from envsdk.errors import UsageError
from registry.bulk import insert_rows, is_one_of
from registry.db import Item, SetItem, SetRevision, TaskSet
from registry.derive.fold import chunks

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class SetEntry:
    """One item of a set."""

    slug: str
    task_digest: str
    verifier_digest: str


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """One revision in a list: its reference ``NAME@NUMBER``, what it holds, and the query that it was pinned from."""

    reference: str
    tasks: int
    query: str
    digest: str
    created_at: float


def list_revisions(session: Session) -> list[RevisionLine]:
    """Every revision that was not deleted: sets by name, the newest revision first."""
    rows = session.execute(
        select(TaskSet.name, SetRevision)
        .join(TaskSet, TaskSet.id == SetRevision.set_id)
        .where(SetRevision.deleted_at.is_(None))
        .order_by(TaskSet.name, SetRevision.number.desc())
    )
    return [RevisionLine(f"{name}@{one.number}", one.size, one.query, one.digest, one.created_at) for name, one in rows]


def set_digest(items: Iterable[SetEntry]) -> str:
    """The digest of a set of items, whatever their order."""
    return sha256_hex(canonical(sorted([item.task_digest, item.verifier_digest] for item in items)))


def normal_name(name: str) -> str:
    """The name as it is stored: lower case, spaces and underscores as dashes.

    Raises:
        UsageError: it holds what a name may not.
    """
    normal = re.sub(r"[\s_]+", "-", name.strip().lower())
    if not _NAME.fullmatch(normal):
        raise UsageError(f"{name!r} is no name of a task set", code="bad_name", hint="use letters, digits, '-' and '.'")
    return normal


def add_revision(
    session: Session,
    name: str,
    ids: Sequence[int],
    *,
    digest: str,
    query: str = "",
    lineage_id: int | None = None,
    parent: SetRevision | None = None,
    note: dict[str, object] | None = None,
) -> SetRevision:
    """Store the next revision of a set (made where it is new). ``ids`` are item ids in order."""
    owner = session.scalar(select(TaskSet).where(TaskSet.name == name))
    if owner is None:
        owner = TaskSet(name=name, created_at=time.time())
        session.add(owner)
        session.flush()
    newest = session.scalar(select(func.max(SetRevision.number)).where(SetRevision.set_id == owner.id)) or 0
    revision = SetRevision(
        set_id=owner.id,
        number=newest + 1,
        digest=digest,
        query=query,
        lineage_id=lineage_id,
        parent_id=None if parent is None else parent.id,
        size=len(ids),
        note=note or {},
        created_at=time.time(),
    )
    session.add(revision)
    session.flush()
    rows = [{"revision_id": revision.id, "ordinal": place, "item_id": item} for place, item in enumerate(ids)]
    insert_rows(session, SetItem.__table__, rows)
    return revision


def latest_revision(session: Session, name: str) -> SetRevision | None:
    """The newest revision of a set that was not deleted."""
    return session.scalar(
        select(SetRevision)
        .join(TaskSet, TaskSet.id == SetRevision.set_id)
        .where(TaskSet.name == name, SetRevision.deleted_at.is_(None))
        .order_by(SetRevision.number.desc())
        .limit(1)
    )


def find_revision(session: Session, reference: str) -> SetRevision:
    """The revision that ``NAME`` (its latest), ``NAME@NUMBER`` or a set digest names.

    Raises:
        UsageError: there is none (``unknown_set``), or it was deleted (``deleted_revision``, with the reason).
    """
    name, _, number = reference.partition("@")
    statement = select(SetRevision).join(TaskSet, TaskSet.id == SetRevision.set_id)
    if re.fullmatch(r"[0-9a-f]{64}", reference):
        statement = statement.where(SetRevision.digest == reference)
    else:
        statement = statement.where(TaskSet.name == name.lower())
        if number:
            wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
            statement = statement.where(SetRevision.number == wanted)
    found = session.scalar(statement.order_by(SetRevision.deleted_at.is_not(None), SetRevision.number.desc()).limit(1))
    if found is None:
        raise UsageError(
            f"there is no task set {reference!r}", code="unknown_set", hint="`envsdk registry sets` lists them"
        )
    if found.deleted_at is not None:
        raise UsageError(
            f"{reference} was deleted: {found.deleted_reason}", code="deleted_revision", hint="pin the query again"
        )
    return found


def delete_revision(session: Session, reference: str, *, reason: str) -> None:
    """Delete the revision ``NAME@NUMBER``: its row, its number and its items stay, and whoever asks is told ``reason``.

    Raises:
        UsageError: as `find_revision` does; it names no number (``no_number``); there is no reason (``no_reason``).
    """
    if not reference.partition("@")[2]:
        raise UsageError(
            f"{reference!r} names no revision", code="no_number", hint="write NAME@NUMBER; one revision is deleted"
        )
    if not reason.strip():
        raise UsageError("a deleted revision needs a reason", code="no_reason", hint="say it with --reason")
    revision = find_revision(session, reference)
    revision.deleted_at, revision.deleted_reason = time.time(), reason.strip()


def revision_entries(session: Session, revision_id: int) -> tuple[SetEntry, ...]:
    """The items of a revision, in order."""
    rows = session.execute(
        select(Item.slug, Item.task_digest, Item.verifier_digest)
        .join(SetItem, SetItem.item_id == Item.id)
        .where(SetItem.revision_id == revision_id)
        .order_by(SetItem.ordinal)
    )
    return tuple(SetEntry(*row) for row in rows)


def entries_of(session: Session, ids: Sequence[int]) -> tuple[SetEntry, ...]:
    """Slugs and digests of items, in the order of ``ids``."""
    found = {}
    for some in chunks(ids):
        for row in session.execute(
            select(Item.id, Item.slug, Item.task_digest, Item.verifier_digest).where(is_one_of(session, Item.id, some))
        ):
            found[row.id] = SetEntry(row.slug, row.task_digest, row.verifier_digest)
    return tuple(found[item] for item in ids)

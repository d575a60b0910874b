"""Look for what should not be: missing blobs, digests that do not match, standings that lost an outcome.

Nothing is repaired. What is derived is repaired by ``rebuild``; what is primary by pushing again, or from a backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from envsdk.digest import digest_rows
from envsdk.errors import StoreError
from registry.blobs import BlobStore
from registry.db import Item, ItemTag, Lineage, Outcome, Package, SetRevision, Standing, StandingTag, TaskSet
from registry.derive.tallies import stale
from registry.derive.versions import stale_counts
from registry.query.words import indexed_items
from registry.revisions import revision_entries, set_digest

_MOST = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: ``code`` is stable, ``where`` names the object."""

    code: str
    where: str
    why: str
    fix: str


def look(session: Session, blobs: BlobStore, *, deep: bool = False) -> Iterator[Finding]:
    """Every finding. ``deep`` reads each blob and checks its hash; else only that it is there."""
    yield from _database(session)
    yield from _packages(session, blobs, deep=deep)
    yield from _standings(session)
    yield from _tags(session)
    yield from _tallies(session)
    yield from _words(session)
    yield from _sets(session)


def _database(session: Session) -> Iterator[Finding]:
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        for (said,) in connection.execute(text("PRAGMA integrity_check(20)")):
            if said != "ok":
                yield Finding("database_corrupt", "database", said, "restore a backup")
        for row in connection.execute(text("PRAGMA foreign_key_check")):
            yield Finding("dangling_reference", str(row[0]), f"row {row[1]} points at nothing", "restore a backup")


def _packages(session: Session, blobs: BlobStore, *, deep: bool) -> Iterator[Finding]:
    seen: set[str] = set()
    for package in session.scalars(select(Package).order_by(Package.digest)):
        rows = package.manifest["files"]
        if digest_rows(rows) != package.digest:
            yield Finding("digest_mismatch", package.digest, "the manifest has another digest", "push the task again")
        for path, _, digest in rows:
            if digest in seen:
                continue
            seen.add(digest)
            if fault := _blob_fault(blobs, digest, deep=deep):
                yield Finding(fault, f"{package.digest[:12]}/{path}", f"blob {digest[:12]}", "push the task again")


def _blob_fault(blobs: BlobStore, digest: str, *, deep: bool) -> str:
    if not deep:
        return "" if blobs.holds(digest) else "blob_missing"
    try:
        blobs.get(digest)
    except StoreError as error:
        return error.code
    return ""


def _standings(session: Session) -> Iterator[Finding]:
    newest = (
        select(Outcome.item_id, Outcome.lineage_id, func.max(Outcome.id).label("newest"))
        .where(Outcome.lineage_id.is_not(None))
        .group_by(Outcome.item_id, Outcome.lineage_id)
        .subquery()
    )
    behind = (
        select(newest.c.item_id, newest.c.lineage_id, newest.c.newest, Standing.folded_to)
        .outerjoin(Standing, (Standing.item_id == newest.c.item_id) & (Standing.lineage_id == newest.c.lineage_id))
        .where((Standing.folded_to.is_(None)) | (Standing.folded_to != newest.c.newest))
        .limit(_MOST)
    )
    for row in session.execute(behind):
        why = f"folded to outcome {row.folded_to}, the newest is {row.newest}"
        yield Finding("standing_behind", f"item {row.item_id}, lineage {row.lineage_id}", why, "rebuild")
    wanted = _count(session, Item) * _count(session, Lineage)
    if _count(session, Standing) != wanted:
        yield Finding("standing_missing", "standing", f"{_count(session, Standing)} rows, not {wanted}", "rebuild")


def _tags(session: Session) -> Iterator[Finding]:
    wanted = _count(session, ItemTag) * _count(session, Lineage)
    if _count(session, StandingTag) != wanted:
        why = f"{_count(session, StandingTag)} rows, not {wanted}"
        yield Finding("index_missing", "standing_tag", why, "rebuild")
    stale = (
        select(StandingTag.item_id, StandingTag.lineage_id)
        .join(
            Standing,
            (Standing.item_id == StandingTag.item_id) & (Standing.lineage_id == StandingTag.lineage_id),
        )
        .where(
            (Standing.status != StandingTag.status)
            | (Standing.learnability != StandingTag.learnability)
            | (Standing.mean != StandingTag.mean)
        )
        .limit(_MOST)
    )
    for row in session.execute(stale):
        where = f"item {row.item_id}, lineage {row.lineage_id}"
        yield Finding("index_stale", where, "the query index differs from the standing", "rebuild")


def _tallies(session: Session) -> Iterator[Finding]:
    for kind, name in stale(session):
        yield Finding("tally_stale", f"{kind} {name}", "its counts are not those of its outcomes", "rebuild")
    for lineage, run in stale_counts(session):
        where = f"lineage {lineage}, run {run}"
        yield Finding("count_stale", where, "its count of weight versions ends elsewhere", "rebuild")


def _words(session: Session) -> Iterator[Finding]:
    known, items = indexed_items(session), _count(session, Item)
    if known is not None and known != items:
        yield Finding("words_missing", "item_words", f"{known} of {items} items in the index of words", "rebuild")


def _sets(session: Session) -> Iterator[Finding]:
    rows = session.execute(
        select(TaskSet.name, SetRevision.id, SetRevision.number, SetRevision.digest)
        .join(TaskSet, TaskSet.id == SetRevision.set_id)
        .order_by(SetRevision.id)
    )
    for row in rows.all():
        if set_digest(revision_entries(session, row.id)) != row.digest:
            yield Finding("digest_mismatch", f"{row.name}@{row.number}", "its items have another digest", "restore")


def _count(session: Session, table: type[Item | ItemTag | Lineage | Standing | StandingTag]) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0

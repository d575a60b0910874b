"""Everything primary in plain files, to move a registry between databases; and an online copy of an embedded one.

An archive is a folder: ``archive.json``, one JSON-lines file a table, and the blobs. What is derived is left out and
rebuilt on import, which is also a proof of it. Tokens and jobs stay where they are.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import LargeBinary, func, select, text
from sqlalchemy.exc import CompileError, StatementError
from sqlalchemy.orm import Session

from envsdk.errors import StoreError, UsageError
from envsdk.spec.contents import new_directory
from registry.blobs import BlobStore
from registry.db import (
    Base,
    CheckReportRow,
    Difficulty,
    Episode,
    Fit,
    Item,
    ItemTag,
    Lineage,
    Outcome,
    Package,
    Policy,
    PriorRow,
    Proposal,
    Retirement,
    Run,
    SavedQuery,
    SetItem,
    SetRevision,
    Tag,
    TaskSet,
)
from registry.db.engine import Database
from registry.derive.rebuild import Rebuilt, rebuild

FORMAT = 2
_ADDED: dict[str, dict[str, Any]] = {
    "lineage": {"episodes": 0, "graded": 0, "newest_version": None, "last_at": None},
    "run": {
        **dict.fromkeys(("successes", "failures", "infra_failures", "unknown", "graded"), 0),
        "reward_sum": 0.0,
    },
    "proposal": {"decided_by": "", "decided_at": None},
}
"""Columns that an archive of format 1 lacks. What of them is derived is rebuilt."""
PRIMARY: tuple[type[Base], ...] = (
    Lineage,
    Item,
    Tag,
    ItemTag,
    Package,
    CheckReportRow,
    Policy,
    Run,
    Outcome,
    Episode,
    Fit,
    Difficulty,
    PriorRow,
    TaskSet,
    SetRevision,
    SetItem,
    Retirement,
    Proposal,
    SavedQuery,
)
"""Parents before children."""
_BATCH = 2_000

Heard = Callable[[str, int], None]


def export_archive(database: Database, blobs: BlobStore, dest: Path, *, heard: Heard = lambda _t, _n: None) -> int:
    """Write an archive into ``dest``, a new or empty folder; the number of rows.

    Raises:
        UsageError: ``dest`` is not empty.
        StoreError: a file cannot be written (``unwritable``) or a blob read; ``dest`` is as it was then.
    """
    total = 0
    with new_directory(dest) as draft:
        (draft / "tables").mkdir()
        (draft / "blobs").mkdir()
        with database.reading() as session:
            for model in PRIMARY:
                count = _write_table(session, model, draft / "tables" / f"{model.__tablename__}.jsonl")
                heard(model.__tablename__, count)
                total += count
            for digest in _blob_digests(session):
                (draft / "blobs" / digest).write_bytes(blobs.get(digest))
        (draft / "archive.json").write_text(json.dumps({"format": FORMAT, "rows": total}), encoding="utf-8")
    return total


def import_archive(
    database: Database, blobs: BlobStore, source: Path, *, heard: Heard = lambda _t, _n: None
) -> Rebuilt:
    """Read an archive into an empty registry, all of it or nothing, and derive the rest.

    Raises:
        UsageError: it is no archive, or the registry holds something (``registry_not_empty``).
    """
    with _as_bad_archive(source):
        head = json.loads((source / "archive.json").read_text(encoding="utf-8"))
        if head["format"] not in (1, FORMAT):
            raise UsageError(f"the archive has format {head['format']!r}", code="bad_archive", where=str(source))
        added = _ADDED if head["format"] == 1 else {}
        paths = sorted((source / "blobs").iterdir())
    for path in paths:
        if blobs.put(path.read_bytes()) != path.name:
            raise StoreError(f"blob {path.name[:12]} is damaged", code="blob_corrupt", where=str(path))
    with database.writing() as session:
        if session.scalar(select(func.count()).select_from(Item)):
            raise UsageError("the registry is not empty", code="registry_not_empty", hint="import into a new one")
        session.execute(Lineage.__table__.delete())  # type: ignore[attr-defined]
        total = 0
        for model in PRIMARY:
            path = source / "tables" / f"{model.__tablename__}.jsonl"
            with _as_bad_archive(path):
                count = _read_table(session, model, path, added=added.get(model.__tablename__, {}))
            heard(model.__tablename__, count)
            total += count
        if total != head["rows"]:
            raise UsageError(
                f"the archive holds {total:,} rows, not the {head['rows']:,} that were written",
                code="bad_archive",
                where=str(source),
                hint="copy it again, all of it",
            )
        _set_sequences(session)
        return rebuild(session)


@contextmanager
def _as_bad_archive(where: Path) -> Iterator[None]:
    """What a damaged file makes the readers raise, as one error that names it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StatementError, CompileError) as error:
        raise UsageError(
            f"this is no archive: {error}",
            code="bad_archive",
            where=str(where),
            hint="export it again, or copy it again",
        ) from error


def back_up(database: Database, blobs: BlobStore, dest: Path) -> Path:
    """Copy an embedded registry while it is in use; ``dest/registry.sqlite`` opens as a registry of its own.

    Raises:
        UsageError: the database is a server's (``not_embedded``), or ``dest`` is not empty.
        StoreError: a file cannot be written (``unwritable``) or a blob read; ``dest`` is as it was then.
    """
    if not database.is_sqlite:
        raise UsageError(
            "the database is a server's", code="not_embedded", hint="use pg_dump, or `envsdk registry export`"
        )
    with new_directory(dest) as draft:
        with database.reading() as session, closing(sqlite3.connect(draft / "registry.sqlite")) as copy:
            driver: Any = session.connection().connection.driver_connection
            try:
                driver.backup(copy)
            except sqlite3.Error as error:
                raise StoreError(f"cannot write: {error}", code="unwritable", where=str(dest)) from error
        with database.reading() as session:
            for digest in _blob_digests(session):
                folder = draft / "blobs" / digest[:2]
                folder.mkdir(parents=True, exist_ok=True)
                (folder / digest).write_bytes(blobs.get(digest))
    return dest / "registry.sqlite"


def _blob_digests(session: Session) -> list[str]:
    return sorted({row[2] for manifest in session.scalars(select(Package.manifest)) for row in manifest["files"]})


def _write_table(session: Session, model: type[Base], path: Path) -> int:
    columns = list(model.__table__.c)
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for row in session.execute(select(*columns).order_by(*model.__table__.primary_key)).yield_per(_BATCH):
            values = {column.name: _as_json(value) for column, value in zip(columns, row, strict=True)}
            out.write(json.dumps(values, ensure_ascii=False) + "\n")
            count += 1
    return count


def _as_json(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _read_table(session: Session, model: type[Base], path: Path, *, added: Mapping[str, Any]) -> int:
    binary = {column.name for column in model.__table__.c if isinstance(column.type, LargeBinary)}
    columns = set(model.__table__.c.keys())
    count = 0
    for rows in _row_batches(path):
        for row in rows:
            row.update(added)
            if set(row) != columns:
                raise ValueError(f"a row holds the columns {', '.join(sorted(set(row) ^ columns))} or lacks them")
            for name in binary:
                row[name] = base64.b64decode(row[name])
        session.execute(model.__table__.insert(), rows)  # type: ignore[attr-defined]
        count += len(rows)
    return count


def _row_batches(path: Path) -> Iterator[list[dict[str, Any]]]:
    with path.open(encoding="utf-8") as lines:
        batch = []
        for line in lines:
            batch.append(json.loads(line))
            if len(batch) >= _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def _set_sequences(session: Session) -> None:
    """PostgreSQL's own counters must go on after the ids that were brought along."""
    if session.connection().dialect.name != "postgresql":
        return
    for model in PRIMARY:
        table = model.__table__
        if "id" not in table.c or table.c.id.autoincrement is False:
            continue
        name = model.__tablename__
        session.execute(
            text(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), coalesce(max(id), 0) + 1, false) FROM {name}")  # noqa: S608
        )

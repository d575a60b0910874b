"""Wrong data bases: the oracle's own SQLite file with no rows in a table, or without the last."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from envsdk.checks.mutation.mutant import Mutant

MAGIC = b"SQLite format 3\0"
MAX_BYTES = 1 << 20


def mutants(path: str, content: bytes, before: bytes | None) -> Iterator[Mutant]:
    """Variations of the tables that the oracle made or changed; none where the file is no data base.

    Args:
        path: where it lies.
        content: what the oracle left.
        before: what lay there at the start.
    """
    if not content.startswith(MAGIC) or len(content) > MAX_BYTES:
        return
    old = _rows(before) if before is not None else {}
    tables = {table: rows for table, rows in _rows(content).items() if rows and old.get(table) != rows}
    changes = {
        "without any rows": "delete from {table}",
        "without its last row": "delete from {table} where rowid = (select max(rowid) from {table})",
    }
    for table in tables:
        for what, change in changes.items():
            other = _changed(content, change.format(table=quoted(table)))
            if other is not None:
                yield Mutant(f"{path}: its table {table} {what}", {path: other})


def table_names(base: sqlite3.Connection) -> list[str]:
    """Tables of an open data base. Raises `sqlite3.Error` where it is none."""
    return [name for (name,) in base.execute("select name from sqlite_master where type = 'table'").fetchall()]


def quoted(table: str) -> str:
    """A table's name as SQL takes it."""
    return '"' + table.replace('"', '""') + '"'


def _rows(content: bytes) -> dict[str, list[tuple[object, ...]]]:
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(content)
        return {name: base.execute(f"select * from {quoted(name)}").fetchall() for name in table_names(base)}  # noqa: S608
    except sqlite3.Error:  # no data base after all
        return {}
    finally:
        base.close()


def _changed(content: bytes, change: str) -> bytes | None:
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(content)
        base.execute(change)
        base.commit()
        return base.serialize()
    except sqlite3.Error:  # a trigger forbids it, or the table has no rowid
        return None
    finally:
        base.close()

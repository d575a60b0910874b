"""One SQL query against another, by what both select from the same SQLite database.

Rows are compared as a collection: order counts only where the truth declares it with an ``ORDER BY`` of its own,
outside of every subquery; names of columns never count, their order does. The candidate is run read-only on a copy, for
a bounded time and a bounded number of rows; it can attach nothing, load nothing and change nothing.
"""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envsdk.graders.fence import without_fence
from envsdk.graders.verdict import Verdict, judged, unreadable_truth

MAX_ROWS = 100_000
MAX_BYTES = 16 << 20
"""Of one value, and of all that a query selects."""
REL_TOL = 1e-9
"""How far reals may be apart, relative to the larger: a sum taken in another order differs in its last digits."""
_STEPS_PER_LOOK = 10_000
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33}  # 33: SQLITE_RECURSIVE
_FORBIDDEN_FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|[A-Za-z_]\w*|[()]|.", re.DOTALL
)
Row = tuple[Any, ...]


class _TooMuchError(Exception):
    """A query takes too long or selects too much."""


@dataclass(frozen=True)
class _Selected:
    width: int
    rows: list[Row]


def sql(candidate: str, truth: str, *, database: bytes | str, timeout_s: float = 5.0) -> Verdict:
    """Right where both queries select the same rows.

    Args:
        candidate: one query, possibly in one fenced code block. What SQLite takes for none, what would change something
            and several statements are ``no_answer``; too slow or too many rows is ``incorrect``.
        truth: one query.
        database: the content of a database file, or a script that makes one.
        timeout_s: seconds that each query may take.

    Raises:
        VerifierError: ``unreadable_truth``: the database cannot be made, or the truth's own query fails on it.
    """
    with tempfile.TemporaryDirectory(prefix="sql-") as folder:
        place = Path(folder, "database")
        try:
            _make(place, database)
            want = _run(place, without_fence(truth), timeout_s)
        except (sqlite3.Error, sqlite3.Warning, _TooMuchError, ValueError) as error:
            raise unreadable_truth("sql", f"{truth}: {error}") from error
        try:
            got = _run(place, without_fence(candidate), timeout_s)
        except _TooMuchError:
            return "incorrect"
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return "no_answer"
    return judged(_same(got, want, ordered=is_ordered(truth)))


def is_ordered(query: str) -> bool:
    """The query has an ``ORDER BY`` of its own, not only in a subquery, a window or a text."""
    depth, last = 0, ""
    for piece in _TOKEN.findall(query):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        word = piece.upper()
        if depth == 0 and last == "ORDER" and word == "BY":
            return True
        if not piece.isspace() and not piece.startswith(("--", "/*")):
            last = word if depth == 0 else ""
    return False


def _make(place: Path, database: bytes | str) -> None:
    if isinstance(database, bytes):
        place.write_bytes(database)
        return
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.executescript(database)


def _run(place: Path, query: str, timeout_s: float) -> _Selected:
    uri = f"{place.as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        _bound(connection)
        deadline = time.monotonic() + timeout_s
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_PER_LOOK)
        connection.set_authorizer(_authorize)
        try:
            cursor = connection.execute(query)
            if cursor.description is None:
                raise sqlite3.ProgrammingError("selects nothing")
            return _Selected(len(cursor.description), list(_bounded(cursor)))
        except sqlite3.Error as error:
            if time.monotonic() > deadline or "too big" in str(error):
                raise _TooMuchError from error
            raise


def _bounded(cursor: sqlite3.Cursor) -> Iterator[Row]:
    room = MAX_BYTES
    for number, row in enumerate(cursor):
        room -= sum(len(value) for value in row if isinstance(value, str | bytes))
        if number >= MAX_ROWS or room < 0:
            raise _TooMuchError
        yield row


def _bound(connection: sqlite3.Connection) -> None:
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    if hasattr(connection, "setlimit"):  # Python 3.11
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1 << 20)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def _authorize(action: int, first: str | None, second: str | None, _database: str | None, _inner: str | None) -> int:
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or first or "").lower() in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _same(got: _Selected, want: _Selected, *, ordered: bool) -> bool:
    if (got.width, len(got.rows)) != (want.width, len(want.rows)):
        return False
    sides = [selected.rows if ordered else sorted(selected.rows, key=_sort_key) for selected in (got, want)]
    pairs = (pair for rows in zip(*sides, strict=True) for pair in zip(*rows, strict=True))
    return all(_equal(left, right) for left, right in pairs)


def _sort_key(row: Row) -> list[tuple[int, Any]]:
    """What is exact comes first, so that reals that differ in their last digits cannot part equal rows."""
    return [*_exact_parts(row), *((1, value) for value in row if _is_number(value))]


def _exact_parts(row: Row) -> Iterator[tuple[int, Any]]:
    for value in row:
        if value is None:
            yield 0, 0
        elif isinstance(value, str):
            yield 2, value
        elif isinstance(value, bytes):
            yield 3, value
        else:
            yield 1, 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        if not (_is_number(left) and _is_number(right)):
            return False
        return left == right or math.isclose(left, right, rel_tol=REL_TOL)
    return type(left) is type(right) and left == right

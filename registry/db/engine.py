"""Open a database: SQLite as the embedded default, PostgreSQL when one machine is not enough.

`open_database` brings the schema up to date first. SQLite runs in WAL mode with a busy timeout, and a transaction that
will write takes the write lock at its start (``BEGIN IMMEDIATE``): two writers queue instead of failing half-way. On
PostgreSQL writers of derived data queue on one advisory lock, so that outcomes are folded in the order of their ids.
Every failure of the driver leaves as a `StoreError` with a code (``database_locked``, ``database_read_only``,
``database_full``, ``database_unreachable``).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError
from sqlalchemy.orm import Session

from envsdk.errors import StoreError, UsageError

BUSY_TIMEOUT_S = 30.0
_TRUSTED_S = 1.0
"""A connection that answered so lately is not asked again whether it does."""
_WRITER_LOCK = 0x656E7673  # any fixed number: the key of PostgreSQL's advisory lock


@dataclass(frozen=True, slots=True)
class Database:
    """An open database. `reading` and `writing` are the only ways to touch it."""

    engine: Engine

    @property
    def is_sqlite(self) -> bool:
        """Whether this is the embedded database."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that sees one consistent state and is rolled back at the end."""
        # SQLite's transactions do so anyhow; PostgreSQL's see whatever was committed before each statement.
        engine = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="REPEATABLE READ")
        with _as_store_errors(self.engine), Session(engine) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that holds the write lock from its start and commits at the end, or leaves nothing."""
        with (
            _as_store_errors(self.engine),
            self.engine.connect().execution_options(envsdk_write=True) as connection,
            Session(connection, expire_on_commit=False) as session,
            session.begin(),
        ):
            session.connection()  # begins now, not with the first statement: that takes SQLite's lock
            if not self.is_sqlite:
                session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_LOCK})
            yield session

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def open_database(url: str, *, upgrade: bool = True) -> Database:
    """Open ``url`` (``sqlite:///path`` or ``postgresql+psycopg://...``) and bring its schema up to date.

    Raises:
        UsageError: not such a URL (``bad_registry_url``).
        StoreError: the database cannot be opened, or its schema is newer than this program.
    """
    database = Database(_engine(url))
    if upgrade:
        from registry.db.schema import bring_up_to_date

        try:
            with _as_store_errors(database.engine):
                bring_up_to_date(database.engine)
        except BaseException:
            # Nobody else holds the connections yet, an interrupted upgrade's included.
            database.close()
            raise
    return database


def _engine(url: str) -> Engine:
    if url.startswith(("postgresql://", "postgres://")):
        url = "postgresql+psycopg://" + url.split("://", 1)[1]
    if not url.startswith(("sqlite:///", "postgresql+psycopg://")):
        raise UsageError(
            f"{url!r} is not a registry's database",
            code="bad_registry_url",
            hint="use sqlite:///PATH, postgresql+psycopg://USER@HOST/NAME, or the URL of a registry server",
        )
    try:
        if url.startswith("sqlite"):
            return _sqlite(url)
        return _postgresql(url)
    except (ArgumentError, NoSuchModuleError) as error:
        raise UsageError(f"{url!r} is not a database URL: {error}", code="bad_registry_url") from error


def _postgresql(url: str) -> Engine:
    """An engine that asks a connection whether it still answers before it hands it out, unless it just did.

    Asking each time, as ``pool_pre_ping`` does, is three of the eight messages of a small query.
    """
    engine = create_engine(url, pool_size=8)

    @event.listens_for(engine, "checkin")
    def put_back(_connection: Any, record: Any) -> None:
        record.info["put_back"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def taken(connection: Any, record: Any, _proxy: Any) -> None:
        put_back = record.info.get("put_back")
        if put_back is None or time.monotonic() - put_back < _TRUSTED_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError from error  # the pool opens another

    return engine


def _sqlite(url: str) -> Engine:
    path = url.removeprefix("sqlite:///")
    if path in {"", ":memory:"}:  # each thread would see a database of its own, and all are gone at the end
        raise UsageError(f"{url!r} names no file", code="bad_registry_url", hint="use sqlite:///PATH")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the database's folder: {error.strerror}",
            code="database_unreachable",
            where=path,
            hint="check the path and its permissions",
        ) from error
    opened: set[str] = set()

    def connect() -> sqlite3.Connection:
        connection = _connect(path, make=not opened)
        opened.add(path)
        return connection

    engine = create_engine(url, creator=connect)
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)

    # A file that was removed or replaced can still be written to by who had it open, and nobody will read it.
    @event.listens_for(engine, "connect")
    def remember(_connection: Any, record: Any) -> None:
        record.info["file"] = _identity(path)

    @event.listens_for(engine, "checkout")
    def taken(_connection: Any, record: Any, _proxy: Any) -> None:
        if record.info["file"] != _identity(path):
            raise DisconnectionError  # the pool opens what is there now, or says that there is nothing

    return engine


def _identity(path: str) -> tuple[int, int] | None:
    """Which file lies at a path; `None` where none does."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: str, *, make: bool) -> sqlite3.Connection:
    """A connection to the file, which ``make`` creates where there is none.

    Threads share the pool, each connection being used by one at a time.
    """
    mode = "rwc" if make else "rw"
    name = f"file:{quote(path)}?mode={mode}"
    connection = sqlite3.connect(name, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").close()
    except sqlite3.OperationalError:
        connection.close()
        if not _lies_still(path):
            raise
        # Even to read, WAL mode makes files beside the database, which a read-only file system refuses. Where none can
        # be made and none was left, there is nothing but the file, and it is read as it is.
        return sqlite3.connect(f"file:{quote(path)}?immutable=1", uri=True, check_same_thread=False)
    return connection


def _lies_still(path: str) -> bool:
    """Whether a database is there that nobody here can write and no writer left unfinished."""
    file = Path(path)
    effective = os.access in os.supports_effective_ids
    writable = os.access(file.parent, os.W_OK, effective_ids=effective)
    return file.is_file() and not writable and not file.with_name(f"{file.name}-wal").exists()


def _on_connect(connection: Any, _record: Any) -> None:
    # The driver's own implicit BEGIN would take the write lock too late; _on_begin sends the right one.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA cache_size = -65536")
    # A read-only file or folder refuses the mode; reading still works, and a write says so itself.
    with suppress(connection.OperationalError):
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.close()


def _on_begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("envsdk_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


_STATES = {
    "25006": ("database_read_only", "connect to the primary, or use another registry"),
    "53100": ("database_full", "free some disk space; nothing was half-written"),
    "57P01": ("database_unreachable", "the server is going down; try again when it is up"),
    "57P02": ("database_unreachable", "the server went down; try again when it is up"),
    "57P03": ("database_unreachable", "the server is starting; try again in a moment"),
}
"""PostgreSQL's own codes, whatever language its messages are in."""

_CODES = (
    ("readonly", "database_read_only", "give the file and its folder write permission, or use another registry"),
    ("read-only", "database_read_only", "connect to the primary, or use another registry"),
    ("locked", "database_locked", "another process holds the write lock; try again when it has finished"),
    ("disk is full", "database_full", "free some disk space; nothing was half-written"),
    ("no space left", "database_full", "free some disk space; nothing was half-written"),
    ("disk i/o error", "database_io", "the disk may be full or failing: free some space, or move the database"),
    ("unable to open", "database_unreachable", "check the path and its permissions"),
    ("connection", "database_unreachable", "check that the server runs and the URL is right"),
    ("malformed", "database_corrupt", "restore a backup (`envsdk registry backup` makes them)"),
    ("not a database", "database_corrupt", "the file is no SQLite database; check the path"),
)


@contextmanager
def _as_store_errors(engine: Engine) -> Iterator[None]:
    drivers: type[Exception] = engine.dialect.dbapi.Error  # type: ignore[union-attr]  # both dialects have loaded theirs
    try:
        yield
    except (DBAPIError, drivers) as error:
        # What was copied in bulk met the driver alone, and comes with its own kind of error.
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        said = str(cause).strip()
        code, hint = _meaning(cause, said)
        where = engine.url.render_as_string(hide_password=True)
        raise StoreError(f"the registry's database failed: {said}", code=code, hint=hint, where=where) from error


def _meaning(cause: BaseException, said: str) -> tuple[str, str]:
    """The code of a driver's error, and what to do."""
    state = getattr(cause, "sqlstate", None)
    if state in _STATES:
        return _STATES[state]
    for needle, code, hint in _CODES:
        if needle in said.lower():
            return code, hint
    return "database_failed", ""

"""Opening databases: migrations, two writers, read-only files, and driver errors as our own."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from sqlalchemy import event, func, inspect, select, text

from envsdk.errors import StoreError, UsageError
from registry.client import open_registry
from registry.db import Base, Outcome, Standing
from registry.db.engine import open_database
from registry.db.schema import config_for
from registry.local import LocalRegistry
from registry.migrations.versions import v0001_first_schema as first


@pytest.fixture
def empty_url(registry_url, request, tmp_path):
    """A database without a schema."""
    if registry_url.startswith("sqlite"):
        return registry_url
    database = open_database(registry_url, upgrade=False)
    with database.engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    database.close()
    return registry_url


def test_migrations_give_the_tables_of_the_models(empty_url):
    database = open_database(empty_url)
    command.check(config_for(database.engine))
    assert set(Base.metadata.tables) < set(inspect(database.engine).get_table_names())
    database.close()


def test_the_schema_can_be_taken_down_and_up_again(empty_url):
    database = open_database(empty_url)
    command.downgrade(config_for(database.engine), "base")
    assert set(inspect(database.engine).get_table_names()) <= {"alembic_version"}
    command.upgrade(config_for(database.engine), "head")
    command.check(config_for(database.engine))
    database.close()


def test_an_interrupted_migration_leaves_nothing_and_is_run_again(empty_url, monkeypatch):
    database = open_database(empty_url, upgrade=False)
    config = config_for(database.engine)
    real = first.op.create_table
    calls = []

    def dies_half_way(*args, **options):
        calls.append(args[0])
        if len(calls) == 9:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(first.op, "create_table", dies_half_way)
    with pytest.raises(KeyboardInterrupt):
        command.upgrade(config, "head")
    assert "item" not in inspect(database.engine).get_table_names()
    monkeypatch.undo()
    command.upgrade(config, "head")
    command.check(config)
    database.close()


def test_opening_an_up_to_date_database_changes_nothing(registry_url):
    open_database(registry_url).close()
    open_database(registry_url).close()


def test_a_schema_of_a_newer_program_is_refused(registry_url):
    database = open_database(registry_url)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(StoreError) as caught:
        open_database(registry_url)
    assert caught.value.code == "schema_too_new"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://x",
        "registry.sqlite",
        "sqlite:relative",
        "postgresql+nodriver://x/y",
        "sqlite:///",
        "sqlite:///:memory:",
    ],
)
def test_another_kind_of_url_is_refused_with_the_kinds_there_are(url):
    with pytest.raises(UsageError) as caught:
        open_registry(url)
    assert caught.value.code == "bad_registry_url"
    assert "sqlite:///" in caught.value.hint


def test_a_server_that_is_away_is_unreachable():
    with pytest.raises(StoreError) as caught:
        open_database("postgresql://nobody@127.0.0.1:1/none")
    assert caught.value.code == "database_unreachable"


def test_a_file_that_is_no_database_is_named_so(tmp_path):
    (tmp_path / "registry.sqlite").write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(StoreError) as caught:
        open_database(f"sqlite:///{tmp_path}/registry.sqlite")
    assert caught.value.code == "database_corrupt"


def test_a_read_only_database_can_be_read_and_says_so_when_written(tmp_path, make_task):
    url = f"sqlite:///{tmp_path}/registry.sqlite"
    with LocalRegistry(url) as registry:
        registry.push([make_task("a")])
    # Root may write any file, so the database itself is told to refuse.
    with LocalRegistry(url) as registry:
        registry.database.engine.dispose()
        event.listen(registry.database.engine, "connect", lambda dbapi, _: dbapi.execute("PRAGMA query_only = ON"))
        assert registry.query("").total == 1
        with pytest.raises(StoreError) as caught:
            registry.push([make_task("b")])
        assert caught.value.code == "database_read_only"
        assert registry.query("").total == 1


def test_a_full_disk_leaves_nothing_half_written(tmp_path, make_task, make_record):
    url = f"sqlite:///{tmp_path}/registry.sqlite"
    with LocalRegistry(url) as registry:
        task = make_task("a")
        registry.push([task])
        registry.database.engine.dispose()
        event.listen(registry.database.engine, "connect", lambda dbapi, _: dbapi.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(StoreError) as caught:
            registry.append([make_record(task, True) for _ in range(900)])
        assert caught.value.code == "database_full"
        assert registry.query("").items[0].n == 0


def test_a_writer_that_waits_too_long_is_told_who_holds_it(tmp_path, make_task, monkeypatch):
    monkeypatch.setattr("registry.db.engine.BUSY_TIMEOUT_S", 0.05)
    url = f"sqlite:///{tmp_path}/registry.sqlite"
    with LocalRegistry(url) as registry:
        holder = sqlite3.connect(tmp_path / "registry.sqlite", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught:
            registry.push([make_task("a")])
        holder.execute("ROLLBACK")
        holder.close()
        assert caught.value.code == "database_locked"
        assert registry.push([make_task("a")]).pushed


def test_writers_at_the_same_time_lose_and_double_nothing(registry, make_task, make_record):
    task = make_task("a")
    registry.push([task])
    records = [make_record(task, None) for _ in range(120)]

    def write(writer):
        part = records[:40] + records[40 + 20 * writer : 60 + 20 * writer]
        return [registry.append(part[start : start + 10]) for start in range(0, len(part), 10)]

    with ThreadPoolExecutor(4) as pool:
        results = [result for part in pool.map(write, range(4)) for result in part]
    assert sum(result.accepted for result in results) == 120
    assert sum(result.duplicate for result in results) == 120
    assert registry.query("").items[0].ungraded == 120


def test_several_may_open_a_fresh_database_at_once(empty_url):
    with ThreadPoolExecutor(4) as pool:
        for database in pool.map(open_database, [empty_url] * 4):
            database.close()


def test_a_reader_sees_one_state_whatever_is_written_meanwhile(registry, make_task, make_record):
    task = make_task("a")
    registry.push([task])
    with registry.database.reading() as session:
        before = session.scalar(select(func.count()).select_from(Outcome))
        registry.append([make_record(task, True) for _ in range(3)])
        assert session.scalar(select(func.count()).select_from(Outcome)) == before == 0
        assert session.scalar(select(func.max(Standing.n))) == 0
    with registry.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Outcome)) == 3


def test_writers_after_a_reader_may_write(registry, make_task):
    """The reader's isolation ends with it: its connection goes back to the pool as it was."""
    for slug in "abc":
        with registry.database.reading() as session:
            session.execute(text("SELECT 1"))
        assert registry.push([make_task(slug)]).pushed


def test_a_file_that_was_removed_while_it_was_open_is_missed_and_none_is_made_in_its_place(tmp_path):
    file = tmp_path / "registry.sqlite"
    database = open_database(f"sqlite:///{file}")
    for left in tmp_path.iterdir():
        left.unlink()
    with pytest.raises(StoreError) as missed, database.writing():
        pass
    assert missed.value.code == "database_unreachable"
    assert not file.exists()
    database.close()


def test_a_file_that_was_replaced_is_the_one_that_is_written_to(tmp_path):
    file, other = tmp_path / "registry.sqlite", tmp_path / "other.sqlite"
    open_database(f"sqlite:///{other}").close()
    database = open_database(f"sqlite:///{file}")
    other.rename(file)
    for left in tmp_path.glob("registry.sqlite-*"):
        left.unlink()
    with database.writing() as session:
        session.execute(text("CREATE TABLE told (x INTEGER)"))
    database.close()
    with sqlite3.connect(file) as reader:
        assert reader.execute("SELECT name FROM sqlite_master WHERE name = 'told'").fetchall()
    reader.close()

"""What goes wrong around a registry, on both databases: clear errors, nothing lost, nothing doubled."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import uvicorn
from alembic import command
from sqlalchemy import event, inspect, text
from starlette.testclient import TestClient

from envsdk.errors import StoreError
from registry.db.engine import open_database
from registry.db.schema import config_for
from registry.derive.rebuild import rebuild
from registry.integrity import look
from registry.local import LocalRegistry
from registry.migrations.versions import v0002_lookups as second
from registry.tokens import create_token
from registry.web.app import create_app


@pytest.fixture
def task(registry, make_task, make_report):
    made = make_task("a", tags=("shell",))
    registry.push([made], [make_report(made)])
    return made


def outcomes(registry):
    """Outcomes in the registry, which must be sound."""
    with registry.database.writing() as session:
        assert list(look(session, registry.blobs)) == []
        result = rebuild(session)
        assert result.same
        return result.outcomes


def test_an_upload_cut_off_in_the_middle_is_finished_by_sending_it_again(registry, task, make_record, monkeypatch):
    monkeypatch.setattr("registry.outcomes.BATCH", 50)
    lines = [make_record(task, n % 2 == 0).model_dump_json().encode() for n in range(230)]

    def cut_off():
        yield from lines[:173]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        registry.append_lines(cut_off())
    assert outcomes(registry) == 150
    again = registry.append_lines(lines)
    assert (again.accepted, again.duplicate, again.rejected) == (80, 150, ())
    assert outcomes(registry) == 230


@contextmanager
def served(registry):
    """A real server; yields its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(registry), log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def upload(port, token, body, *, announced):
    """Send a request whose body may be shorter than announced; the answer, empty where the server gave none."""
    head = (
        f"POST /api/outcomes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {announced}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode() + body)
        if announced > len(body):
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return answer


def test_a_connection_that_breaks_during_an_upload_keeps_whole_batches_and_half_of_none(
    registry, task, make_record, monkeypatch
):
    monkeypatch.setattr("registry.api.outcomes.BATCH", 50)
    with registry.database.writing() as session:
        token = create_token(session, "test", scopes=("outcomes",)).secret
    lines = [make_record(task, n % 2 == 0).model_dump_json().encode() for n in range(400)]
    body = b"\n".join(lines)
    with served(registry) as port:
        assert upload(port, token, body[: len(body) // 2], announced=len(body)) == b""
    # The server has ended, and with it what it still did for the broken connection.
    kept = outcomes(registry)
    assert kept < 400
    with served(registry) as port:
        answer = upload(port, token, body, announced=len(body))
    said = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (said["ok"], said["accepted"], said["duplicate"], said["rejected"]) == (True, 400 - kept, kept, [])
    assert outcomes(registry) == 400


def test_a_clock_that_runs_back_loses_nothing_and_rebuilds_the_same(registry, task, make_record):
    registry.append([make_record(task, n % 2 == 0, started_at=5_000.0 - n) for n in range(20)])
    registry.append([make_record(task, True, started_at=-1.0), make_record(task, True, started_at=1e12)])
    assert outcomes(registry) == 22
    assert registry.query("sort:-updated").items[0].n == 22


def test_the_same_upload_from_two_senders_at_once_is_counted_once(registry, task, make_record):
    records = [make_record(task, True) for _ in range(60)]
    results = []
    senders = [threading.Thread(target=lambda: results.append(registry.append(records))) for _ in range(3)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert sorted(result.accepted for result in results) == [0, 0, 60]
    assert outcomes(registry) == 60


def test_a_failure_inside_a_batch_leaves_nothing_of_it(registry, task, make_record, monkeypatch):
    records = [make_record(task, True) for _ in range(10)]

    def fails(*_arguments, **_options):
        raise MemoryError

    monkeypatch.setattr("registry.outcomes.fold", fails)
    with pytest.raises(MemoryError):
        registry.append(records)
    monkeypatch.undo()
    assert outcomes(registry) == 0
    assert registry.append(records).accepted == 10


def test_a_migration_interrupted_after_the_first_is_run_again(registry, task, make_record, monkeypatch):
    registry.append([make_record(task, True)])
    config = config_for(registry.database.engine)
    command.downgrade(config, "0001")
    real = second.op.create_index

    def dies(*arguments, **options):
        real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(second.op, "create_index", dies)
    with pytest.raises(KeyboardInterrupt):
        command.upgrade(config, "head")
    indexes = {index["name"] for index in inspect(registry.database.engine).get_indexes("standing")}
    assert "ix_standing_item_id" not in indexes
    monkeypatch.undo()
    open_database(registry.url).close()
    command.check(config)
    assert outcomes(registry) == 1
    assert registry.query('"do a"').total == 1


def refusing_writes(registry):
    """Make every later connection of ``registry`` refuse to write, as a read-only file or a replica does."""
    statement = (
        "PRAGMA query_only = ON" if registry.database.is_sqlite else "SET SESSION default_transaction_read_only = on"
    )

    def refuse(connection, _record):
        connection.execute(statement)
        if not registry.database.is_sqlite:
            connection.commit()

    registry.database.engine.dispose()
    event.listen(registry.database.engine, "connect", refuse)
    return lambda: event.remove(registry.database.engine, "connect", refuse)


def test_a_database_that_only_reads_says_so_and_still_reads(registry, task, make_task, make_record):
    writable_again = refusing_writes(registry)
    for write in (lambda: registry.append([make_record(task, True)]), lambda: registry.push([make_task("b")])):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.code == "database_read_only"
    assert registry.query("").total == 1
    registry.database.engine.dispose()
    writable_again()
    assert registry.append([make_record(task, True)]).accepted == 1


@pytest.fixture
def unwritable():
    """A folder that holds an embedded registry with one task, and that nobody here may write to for a while."""
    folder = Path(tempfile.mkdtemp(prefix="envsdk-test-"))  # pytest's own folders let no other user in
    user = os.geteuid()

    @contextmanager
    def locked():
        for path in (*folder.glob("*.sqlite"), folder):
            path.chmod(0o555 if path.is_dir() else 0o444)
        if user == 0:
            os.seteuid(65_534)
        try:
            yield
        finally:
            os.seteuid(user)
            folder.chmod(0o755)
            for path in folder.glob("*.sqlite"):
                path.chmod(0o644)

    yield folder, locked
    shutil.rmtree(folder)


def test_an_embedded_registry_in_a_folder_that_cannot_be_written_is_read(unwritable, make_task, make_report):
    folder, locked = unwritable
    url = f"sqlite:///{folder}/registry.sqlite"
    task = make_task("a")
    with LocalRegistry(url) as registry:
        registry.push([task], [make_report(task)])
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["registry.sqlite"]
    with locked(), LocalRegistry(url) as registry:
        assert registry.query("").total == 1
        with pytest.raises(StoreError) as caught:
            registry.resolve("", name="mine")
        assert caught.value.code == "database_read_only"
    with LocalRegistry(url) as registry:
        assert registry.resolve("", name="mine").revision == 1


def test_what_a_writer_left_unfinished_is_not_passed_over(unwritable, make_task, make_record):
    """The newest outcomes are in the log beside the file: reading the file alone would lose them."""
    folder, locked = unwritable
    url = f"sqlite:///{folder}/registry.sqlite"
    task = make_task("a")
    with LocalRegistry(url) as registry:
        registry.push([task])
        registry.append([make_record(task, True)])
        shutil.copytree(folder, folder / "copy", ignore=shutil.ignore_patterns("*-shm", "blobs", "copy"))
    for path in (folder / "copy").iterdir():
        path.rename(folder / path.name)
    (folder / "copy").rmdir()
    with locked():
        try:
            with LocalRegistry(url) as registry:
                assert registry.query("").items[0].n == 1
        except StoreError as error:
            assert error.code in {"database_unreachable", "database_read_only"}  # noqa: PT017 - either is right


def test_a_read_only_database_is_a_503_over_http(registry, task):
    with registry.database.writing() as session:
        token = create_token(session, "test", scopes=("sets",)).secret
    refusing_writes(registry)
    with TestClient(create_app(registry), raise_server_exceptions=False) as client:
        answer = client.post("/api/sets", json={"q": "", "name": "x"}, headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (503, "database_read_only")
        assert client.get("/api/query").status_code == 200


@pytest.fixture
def away(postgres_template, tmp_path):
    """A registry on a server, and a way to take its database away and give it back."""
    url = postgres_template()
    name, admin = url.rsplit("/", 1)[1], url.rsplit("/", 1)[0] + "/postgres"

    @contextmanager
    def gone():
        with psycopg.connect(admin.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            yield
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    with LocalRegistry(url, blobs_url=str(tmp_path / "blobs")) as registry:
        yield registry, gone


@pytest.mark.postgres
def test_a_server_that_is_gone_for_a_while_is_used_again(away, make_task, make_record):
    registry, gone = away
    task = make_task("a")
    registry.push([task])
    records = [make_record(task, True) for _ in range(5)]
    with gone():
        for ask in (lambda: registry.query(""), lambda: registry.append(records)):
            with pytest.raises(StoreError) as caught:
                ask()
            assert caught.value.code == "database_unreachable"
    assert registry.append(records).accepted == 5
    assert outcomes(registry) == 5


@pytest.mark.postgres
def test_a_server_that_goes_during_a_batch_leaves_nothing_of_it(away, make_task, make_record, monkeypatch):
    registry, gone = away
    task = make_task("a")
    registry.push([task])
    records = [make_record(task, True) for _ in range(200)]
    from registry import outcomes as module

    real = module.fold

    def goes(*arguments):
        with gone():
            pass
        return real(*arguments)

    monkeypatch.setattr(module, "fold", goes)
    with pytest.raises(StoreError) as caught:
        registry.append(records)
    assert caught.value.code == "database_unreachable"
    monkeypatch.undo()
    assert outcomes(registry) == 0
    assert registry.append(records).accepted == 200


@pytest.mark.postgres
def test_a_server_that_is_gone_is_a_503_and_a_200_when_it_is_back(away):
    registry, gone = away
    with TestClient(create_app(registry), raise_server_exceptions=False) as client:
        with gone():
            answer = client.get("/api/query")
            assert (answer.status_code, answer.json()["errors"][0]["code"]) == (503, "database_unreachable")
        assert client.get("/api/query").status_code == 200


@pytest.mark.postgres
def test_a_full_server_is_named_so_and_nothing_is_half_written(away, make_task, make_record):
    registry, _ = away
    task = make_task("a")
    registry.push([task])
    # A disk that fills up for everybody is no disk for a test: the server itself reports it, in the middle of a COPY.
    filling = """
        CREATE FUNCTION fills_up() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.id > 100 THEN RAISE EXCEPTION 'kein Platz mehr' USING ERRCODE = 'disk_full'; END IF;
            RETURN NEW;
        END $$
    """
    with registry.database.writing() as session:
        session.execute(text(filling))
        session.execute(
            text("CREATE TRIGGER fills_up BEFORE INSERT ON outcome FOR EACH ROW EXECUTE FUNCTION fills_up()")
        )
    with pytest.raises(StoreError) as caught:
        registry.append([make_record(task, True) for _ in range(200)])
    assert caught.value.code == "database_full"
    assert outcomes(registry) == 0
    with registry.database.writing() as session:
        session.execute(text("DROP FUNCTION fills_up CASCADE"))
    assert registry.append([make_record(task, True)]).accepted == 1


def test_a_wait_for_the_write_lock_ends_when_its_holder_does(registry, task, make_record):
    started, done = threading.Event(), threading.Event()

    def hold():
        with registry.database.writing():
            started.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    started.wait(10)
    waiting = threading.Thread(target=lambda: registry.append([make_record(task, True)]))
    waiting.start()
    time.sleep(0.05)
    assert registry.query("").items[0].n == 0  # readers never wait
    done.set()
    holder.join()
    waiting.join()
    assert registry.query("").items[0].n == 1

"""Processes that die by SIGKILL in the middle of what they do to a registry, on both databases.

Each dies at a place, not at a time: it kills itself there.
"""

from __future__ import annotations

import json
import subprocess
import sys

import httpx2
import pytest
from alembic import command

from registry.db.engine import open_database
from registry.db.schema import config_for
from registry.derive.rebuild import rebuild
from registry.integrity import look
from registry.tokens import create_token

SERVER = """
import os, signal, socket, sys
import uvicorn
from registry import outcomes
from registry.api import outcomes as api
from registry.local import LocalRegistry
from registry.web.app import create_app

outcomes.BATCH = api.BATCH = 50
deadly, folds, fold = int(sys.argv[3]), 0, outcomes.fold

def counted(*arguments):
    global folds
    folds += 1
    fold(*arguments)
    if folds == deadly:
        os.kill(os.getpid(), signal.SIGKILL)

outcomes.fold = counted
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = create_app(LocalRegistry(sys.argv[1], blobs_url=sys.argv[2]))
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
"""
MIGRATION = """
import os, signal, sys
from registry.db.engine import open_database
from registry.migrations.versions import v0003_tallies as third

def dies(*_arguments, **_options):
    os.kill(os.getpid(), signal.SIGKILL)

third.op.get_bind = dies
open_database(sys.argv[1])
"""


@pytest.fixture
def task(registry, make_task, make_report):
    made = make_task("a")
    registry.push([made], [make_report(made)])
    return made


def sound_outcomes(registry):
    with registry.database.writing() as session:
        assert list(look(session, registry.blobs)) == []
        result = rebuild(session)
        assert result.same
        return result.outcomes


def upload(registry, tmp_path, token, lines, *, deadly):
    """Send ``lines`` to a server that dies before it commits its batch number ``deadly``; its answer, if it gave one."""
    arguments = [sys.executable, "-c", SERVER, registry.url, str(tmp_path / "blobs"), str(deadly)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline())
            answer = httpx2.post(
                f"http://127.0.0.1:{port}/api/outcomes",
                content=b"\n".join(lines),
                headers={"Authorization": f"Bearer {token}"},
                timeout=None,
            )
            return json.loads(answer.text)
        except httpx2.TransportError:
            return None
        finally:
            server.kill()


def test_a_server_killed_during_an_upload_keeps_whole_batches_and_is_sent_all_again(
    registry, task, make_record, tmp_path
):
    with registry.database.writing() as session:
        token = create_token(session, "test", scopes=("outcomes",)).secret
    lines = [make_record(task, n % 2 == 0).model_dump_json().encode() for n in range(230)]
    assert upload(registry, tmp_path, token, lines, deadly=3) is None
    assert sound_outcomes(registry) == 100
    answer = upload(registry, tmp_path, token, lines, deadly=0)
    assert (answer["accepted"], answer["duplicate"], answer["rejected"]) == (130, 100, [])
    assert sound_outcomes(registry) == 230


def test_a_migration_killed_in_the_middle_is_run_again(registry, task, make_record):
    registry.append([make_record(task, True) for _ in range(9)])
    config = config_for(registry.database.engine)
    command.downgrade(config, "0001")
    registry.database.close()
    killed = subprocess.run([sys.executable, "-c", MIGRATION, registry.url], check=False)
    assert killed.returncode < 0
    open_database(registry.url).close()
    command.check(config)
    assert sound_outcomes(registry) == 9

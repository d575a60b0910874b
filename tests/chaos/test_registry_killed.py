"""A writer killed at random moments: what was acknowledged is there, nothing is half there, sending all again completes it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from envsdk.digest import sha256_hex
from envsdk.episode.record import EpisodeRecord, PolicyId
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.model import ContainerSpec, TaskSpec
from registry.derive.rebuild import rebuild
from registry.integrity import look
from registry.local import LocalRegistry
from tests.fakes.outcomes import finished

RECORDS = 3_000
WRITER = """
import sys
from registry import outcomes
from registry.local import LocalRegistry

outcomes.BATCH = 50
with LocalRegistry(sys.argv[1]) as registry, open(sys.argv[2], "rb") as lines:
    registry.append_lines(lines, progress=lambda result: print(result.accepted + result.duplicate, flush=True))
"""


@pytest.fixture
def ledger(tmp_path, ended):
    path = tmp_path / "ledger.jsonl"
    path.write_text("\n".join(ended(number).model_dump_json() for number in range(RECORDS)))
    return path


@pytest.fixture
def task(tmp_path):
    spec = TaskSpec(slug="killed", instruction="Do it.\n", container=ContainerSpec())
    files = {
        "tests/test.sh": FileContent(b"#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n", executable=True),
        "environment/Dockerfile": FileContent(b"FROM envsdk-base:bookworm\n"),
    }
    return dump_task(spec, files, tmp_path / "task")


@pytest.fixture
def ended(task):
    def make(number):
        passed = int(sha256_hex(str(number).encode()), 16) % 2 == 0
        return EpisodeRecord(
            episode_id=f"episode-{number}",
            slug=task.slug,
            task_digest=task.digests.task,
            verifier_digest=task.digests.verifier,
            policy=PolicyId(model="small", lineage="small"),
            weight_version_oldest=number // 500,
            outcome=finished(float(passed)),
            started_at=float(number),
        )

    return make


@pytest.mark.slow
def test_a_killed_writer_loses_and_doubles_nothing(tmp_path, task, ledger):
    url = f"sqlite:///{tmp_path}/registry.sqlite"
    with LocalRegistry(url) as registry:
        registry.push([task])
    rng = random.Random(4)
    for _ in range(5):
        acknowledged = killed_after(rng.uniform(0.0, 0.6), url, ledger)
        with LocalRegistry(url) as registry, registry.database.writing() as session:
            assert list(look(session, registry.blobs)) == []
            result = rebuild(session)
            assert result.same
            assert 0 < acknowledged <= result.outcomes <= RECORDS
    with LocalRegistry(url) as registry:
        with ledger.open("rb") as lines:
            result = registry.append_lines(lines)
        assert result.accepted + result.duplicate == RECORDS
        assert registry.query("").items[0].n > 0
        with registry.database.writing() as session:
            assert rebuild(session).outcomes == RECORDS


def killed_after(seconds, url, ledger):
    """Start a writer, kill it a while after its first acknowledgement, and return the last number it acknowledged."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, url, str(ledger)], stdout=subprocess.PIPE, text=True
    ) as process:
        first = process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        said = [first, *process.stdout.read().split("\n")]
    return max(int(line) for line in said if line.strip().isdigit())

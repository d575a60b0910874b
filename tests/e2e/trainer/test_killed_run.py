"""A real run, real vLLM and real learner on the tiny model, killed with SIGKILL and resumed from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envsdk.files.jsonl import read_rows
from registry.client import open_registry
from tests.fakes.runs import parity_registry
from trainer.ledger import Ledger
from trainer.models import tiny_model_dir

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def registry(tmp_path: Path) -> str:
    # A model with random weights writes a text of even length about every other time: enough for a signal.
    return parity_registry(tmp_path)


def command(folder: Path, registry: str, *more: str) -> list[str]:
    envsdk = Path(sys.executable).with_name("envsdk")
    settings = {
        "registry": registry,
        "model": "tiny",
        "steps": 6,
        "groups_per_step": 2,
        "group_size": 4,
        "checkpoint_every": 2,
        "concurrency": 16,
        "learner.lr": 1e-4,
        "engine.max_model_len": 128,
        "engine.kv_cache_gib": 1,
    }
    chosen = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return [str(envsdk), "train", "--query", "family:parity", "--runs", str(folder), "--json", *chosen, *more]


@contextmanager
def started(arguments: list[str], log: Path) -> Iterator[subprocess.Popen]:
    """A process group of its own, none of which outlives the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(arguments, stdout=out, stderr=out, start_new_session=True)
    try:
        yield process
    finally:
        for pid in alive_in_group(process.pid):
            os.kill(int(pid), signal.SIGKILL)
        process.wait()


def wait_for(condition, *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def alive_in_group(group: int) -> list[str]:
    """Processes of a process group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


def test_a_killed_run_leaves_nothing_running_and_resumes_without_losing_or_doubling_anything(tmp_path: Path, registry):
    tiny_model_dir()
    runs = tmp_path / "runs"
    run = runs / "train"
    metrics = run / "metrics.jsonl"

    def steps() -> int:
        return len(read_rows(metrics).rows) if metrics.exists() else 0

    with started(command(runs, registry), tmp_path / "first.log") as first:
        wait_for(lambda: steps() >= 3 or first.poll() is not None, seconds=420)
        assert first.poll() is None, (tmp_path / "first.log").read_text()[-4000:]
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert wait_for(lambda: not alive_in_group(first.pid), seconds=60), alive_in_group(first.pid)
        assert steps() >= 3

    second = subprocess.run(
        command(runs, registry, "--resume"), capture_output=True, text=True, timeout=400, check=False
    )
    assert second.returncode == 0, second.stderr[-4000:]
    result = json.loads(second.stdout)
    assert result["ok"]
    assert result["steps"] == 6
    assert "resuming after step" in second.stderr
    rows = read_rows(metrics).rows
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["sync/version"] for row in rows] == [1, 2, 3, 4, 5, 6]
    starts = {row["episode_id"] for row in read_rows(run / "dispatched.jsonl").rows}
    ends = Counter(record.episode_id for record in Ledger(run).records())
    assert set(ends) == starts
    assert set(ends.values()) == {1}
    assert any(int(lag) > 0 for row in rows for lag in row["lag/tokens"])
    assert json.loads((run / "run.json").read_text())["status"] == "done"
    with open_registry(registry) as client:
        assert sum(item.n for item in client.query("family:parity").items) > 0
    assert not list(Path("/dev/shm").glob(f"envsdk-weights-{first.pid}-*"))

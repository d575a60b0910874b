"""A trainer that is killed while its engine starts takes along what it has spawned, and nothing else."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from trainer.engines import guard
from trainer.engines.guard import Guard, stand_by

KILLED = """
import os, signal, sys
from trainer.engines.guard import Guard
with Guard() as guard:
    guard.watch([int(sys.argv[1])])
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def spawned() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for nothing."""
    with subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"]) as process:
        yield process
        process.kill()


def test_a_killed_trainer_takes_along_what_it_had_spawned(spawned: subprocess.Popen[bytes]) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(spawned.pid)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert spawned.wait() == -signal.SIGKILL


def test_after_a_start_that_ended_its_processes_are_left_alone(spawned: subprocess.Popen[bytes]) -> None:
    with Guard() as watching:
        watching.watch([spawned.pid, None])
    assert watching._process.returncode == -signal.SIGKILL
    assert spawned.poll() is None


def test_a_process_is_told_once() -> None:
    with Guard() as watching:
        told: list[str] = []
        watching._say = told.append  # type: ignore[method-assign]
        watching.watch([7, 7])
        watching.watch([7])
        del watching._say
    assert told == ["7"]


def test_a_stranger_that_has_the_number_now_is_spared(
    spawned: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([1, 2])
    monkeypatch.setattr(guard, "start_ticks", lambda _pid: next(ticks))
    stand_by(io.StringIO(f"{spawned.pid}\n"))
    assert spawned.poll() is None


def test_one_that_has_ended_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond_every_process = 1 << 22  # Linux numbers none so high: nobody can have got it meanwhile
    monkeypatch.setattr(guard, "start_ticks", lambda _pid: 1)
    stand_by(io.StringIO(f"{beyond_every_process}\n"))


def test_a_start_goes_on_without_a_guard_that_somebody_ended(spawned: subprocess.Popen[bytes]) -> None:
    with Guard() as watching:
        os.kill(watching._process.pid, signal.SIGKILL)
        watching._process.wait()
        watching.watch([spawned.pid])
    assert spawned.poll() is None

"""A program that works apart is given up at once, whoever waits for it, and ends with who started it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from envsdk.errors import StoreError
from trainer.apart import run_apart

ENDLESS = """
import os, sys, threading
with open(sys.argv[1], "w") as fifo:
    fifo.write(str(os.getpid()))
threading.Event().wait()
"""
WATCHED = """
import os, sys, threading
from trainer.apart import watched
def work():
    with open(sys.argv[1], "w") as fifo:
        fifo.write(str(os.getpid()))
    threading.Event().wait()
watched(work)
"""
OWNER = """
import sys
from trainer.apart import run_apart
run_apart(["-c", sys.argv[1], sys.argv[2]])
"""


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """Where a program says its process id once it works; reading waits for it."""
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def interrupting(fifo: Path) -> tuple[threading.Thread, list[int]]:
    """A thread that interrupts this process once the program works, and the program's id."""
    pids: list[int] = []

    def interrupt() -> None:
        pids.append(int(fifo.read_text()))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    return thread, pids


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_program_that_ends_well_ends_well() -> None:
    run_apart(["-c", "from trainer.apart import watched\nwatched(lambda: print('of a library'))"])


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_program(fifo: Path) -> None:
    thread, pids = interrupting(fifo)
    with pytest.raises(KeyboardInterrupt):
        run_apart(["-c", ENDLESS, str(fifo)])
    thread.join()
    assert is_gone(pids[0])


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_program_that_an_event_loop_waits_for(fifo: Path) -> None:
    thread, pids = interrupting(fifo)

    async def main() -> None:
        run_apart(["-c", ENDLESS, str(fifo)])

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    thread.join()
    assert is_gone(pids[0])


def test_a_program_ends_with_who_started_it(fifo: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, WATCHED, str(fifo)], stderr=subprocess.PIPE)
    pid = int(fifo.read_text())
    assert not is_gone(pid)
    owner.kill()
    owner.communicate()  # its standard error is the program's too: it is closed when both have ended
    assert owner.returncode == -signal.SIGKILL


def test_what_the_system_refused_the_program_is_told_as_such() -> None:
    code = "from trainer.apart import watched\nwatched(lambda: open('/no/such/file'))"
    with pytest.raises(FileNotFoundError) as caught:
        run_apart(["-c", code])
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, "/no/such/file")


@pytest.mark.parametrize(
    ("code", "how"),
    [("raise SystemExit(3)", "failed"), ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL")],
)
def test_a_program_that_ends_badly_is_told(code: str, how: str) -> None:
    with pytest.raises(StoreError, match=how) as caught:
        run_apart(["-c", code])
    assert caught.value.code == "model_not_made"

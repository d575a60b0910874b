"""A start that takes its time: given up, it ends soon, leaves nothing running, and no interrupt reaches what it spawned."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from trainer.engines.launch import launched

SPAWN = multiprocessing.get_context("spawn")


def _sleep(up) -> None:
    up.set()
    threading.Event().wait(300)


class Engine:
    """Started as vLLM is: a function that blocks until the process which it spawned is up, and fails when that dies."""

    def __init__(self, name: str = "EngineCore") -> None:
        self.up = SPAWN.Event()
        self.core: BaseProcess = SPAWN.Process(target=_sleep, args=(self.up,), name=name)
        self.shut = threading.Event()

    def start(self) -> Engine:
        self.core.start()
        self.core.join()
        raise RuntimeError("Engine core initialization failed")

    def shutdown(self) -> None:
        self.shut.set()


async def until(condition) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens in threads and processes
        await asyncio.sleep(0.01)


async def test_what_was_started_is_returned() -> None:
    engine = Engine()
    assert await launched(lambda: lambda: engine) is engine


async def test_what_it_raises_is_raised() -> None:
    def start():
        raise ValueError("no such model")

    with pytest.raises(ValueError, match="no such model"):
        await launched(lambda: start)


@pytest.mark.parametrize("asked", [1, 3])
async def test_given_up_it_ends_with_its_process_however_often_it_is_asked(asked: int) -> None:
    engine = Engine()
    starting = asyncio.create_task(launched(lambda: engine.start))
    await until(lambda: engine.core.pid is not None and engine.up.is_set())
    for _ in range(asked):
        starting.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert engine.core.exitcode == -signal.SIGKILL


async def test_processes_of_others_are_left_alone() -> None:
    bystander, engine = Engine(), Engine(name="EngineCore_DP0")
    bystander.core.start()
    starting = asyncio.create_task(launched(lambda: engine.start))
    await until(lambda: engine.core.pid is not None and engine.up.is_set())
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert bystander.core.is_alive()
    bystander.core.kill()
    bystander.core.join()


async def test_given_up_while_it_is_loaded_nothing_is_started() -> None:
    loading, may_end, started = threading.Event(), threading.Event(), threading.Event()

    def load():
        loading.set()
        may_end.wait(60)
        return started.set

    starting = asyncio.create_task(launched(load))
    await until(loading.is_set)
    starting.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not started.is_set()


async def test_what_came_up_all_the_same_is_shut_down() -> None:
    engine, starting_up, may_end = Engine(), threading.Event(), threading.Event()

    def start() -> Engine:
        starting_up.set()
        may_end.wait(60)
        return engine

    starting = asyncio.create_task(launched(lambda: start))
    await until(starting_up.is_set)
    starting.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert engine.shut.is_set()


# A process of its own: the tracker of shared memory, whose start clears the mask, must not run yet.
SPAWNER = """
import asyncio, multiprocessing, signal
from types import SimpleNamespace
from trainer.engines.launch import launched

SPAWN = multiprocessing.get_context("spawn")

def blocked():
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

def tell(generations):
    print(blocked(), flush=True)
    if generations:
        spawn(generations - 1)

def spawn(generations):
    process = SPAWN.Process(target=tell, args=(generations,))
    process.start()
    process.join()
    return SimpleNamespace(shutdown=lambda: None)

async def main():
    await launched(lambda: lambda: spawn(1))
    print(await asyncio.to_thread(blocked))

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_an_interrupt_reaches_no_process_that_it_spawned_and_the_thread_is_as_before(tmp_path: Path) -> None:
    script = tmp_path / "spawner.py"
    script.write_text(SPAWNER)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False"]

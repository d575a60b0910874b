"""Starting an engine, which takes tens of seconds and cannot be interrupted, so that it can be given up.

Promised: a cancelled start ends in about a second once vLLM is imported, and leaves no process behind, nor does one
whose trainer is killed; an interrupt at the terminal reaches the trainer alone, which then ends its engines in order.
Not promised: that the import of vLLM, some ten seconds, is cut short.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Protocol, TypeVar

from envsdk.errors import EngineError
from trainer.engines.guard import Guard

_EVERY_S = 0.2
_CORE = "EngineCore"  # what vLLM names the process that it spawns


class Ends(Protocol):
    """An engine as far as a start that was given up needs it."""

    def shutdown(self) -> object: ...


E = TypeVar("E", bound=Ends)


async def launched(load: Callable[[], Callable[[], E]]) -> E:
    """What the function that ``load`` returns has started; both run in a thread. Raises what they raise.

    Cancelled before the second, there is none; cancelled later, the processes that it has spawned are killed, upon
    which it fails, and what it has started all the same is shut down.
    """
    others = set(multiprocessing.active_children())
    given_up = threading.Event()
    with Guard() as guard:
        work = asyncio.ensure_future(asyncio.to_thread(_start, load, given_up))
        try:
            while not (await asyncio.wait({work}, timeout=_EVERY_S))[0]:
                guard.watch(child.pid for child in _cores(others))
            return work.result()
        except asyncio.CancelledError:
            given_up.set()
            await _ended(work, others)
            raise


async def _ended(work: asyncio.Future[E], others: set[BaseProcess]) -> None:
    """Until a start that was given up is over, by its failure or by the end of what it has started all the same."""
    while not work.done():
        for child in _cores(others):
            child.kill()
        try:
            await asyncio.wait({work}, timeout=_EVERY_S)
        except asyncio.CancelledError:
            continue  # asked for already; it cannot be left before its processes are gone
    if work.exception() is None:
        await asyncio.to_thread(work.result().shutdown)


def _cores(others: set[BaseProcess]) -> list[BaseProcess]:
    """The engines' processes that this one has spawned since."""
    found = multiprocessing.active_children()
    return [child for child in found if child not in others and child.name.startswith(_CORE)]


def _start(load: Callable[[], Callable[[], E]], given_up: threading.Event) -> E:
    # Processes inherit the mask of the thread that spawns them. Starting the tracker of shared memory would clear it.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        start = load()
        if given_up.is_set():
            raise EngineError("the start was given up", code="engine_start", hint="start it again")
        return start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

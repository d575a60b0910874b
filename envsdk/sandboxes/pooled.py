"""What both bundled back ends do the same way: warm pools, the disk watcher, clean-up behind the caller, closing.

A back end subclasses `PooledProvider` and says how to start one sandbox and what else it must let go of at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Generic, TypeVar

from envsdk.sandboxes.base import Sandbox, SandboxSpec
from envsdk.sandboxes.disk import DiskWatch, free_mib
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.pools import STARTS_AT_ONCE, PoolStats, WarmPools, idle_budget
from envsdk.sandboxes.prepared import prepare

B = TypeVar("B", bound=KeptSandbox)


class PooledProvider(ABC, Generic[B]):
    """Base of the bundled providers. Use from one event loop; ``storage`` is where sandboxes write, if it is here."""

    def __init__(self, storage: Path | None) -> None:
        self._storage = storage
        self._open: set[B] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pools: WarmPools[B] | None = None
        self._disk = DiskWatch(lambda: self._open, storage) if storage is not None else None

    async def acquire(self, spec: SandboxSpec, *, timeout_s: float = 60.0) -> Sandbox:
        """A sandbox of this spec, warm where one is ready. One that joins a network is always started anew."""
        return await (self.start(spec, timeout_s) if spec.join else self._warm().take(spec, timeout_s))

    async def prewarm(self, spec: SandboxSpec, n: int) -> None:
        """Have ``n`` idle sandboxes of this spec for the next two minutes, within the machine's budget."""
        await self._warm().prewarm(spec, n)

    async def prepare(self, spec: SandboxSpec, script: str, *, timeout_s: float = 60.0) -> str:
        """The pinned reference of ``spec.image`` with a set-up script's work in it (`envsdk.sandboxes.prepared`)."""
        return await prepare(self, spec, script, timeout_s=timeout_s)

    def storage_free_mib(self) -> int | None:
        """What is left on the disk that sandboxes write to; `None` where it is on another machine."""
        return free_mib(self._storage) if self._storage is not None else None

    def pool_stats(self) -> PoolStats:
        """What the warm pools did so far."""
        return self._warm().stats()

    async def start(self, spec: SandboxSpec, timeout_s: float) -> B:
        """A new sandbox, from no pool. Raises `SandboxError`."""
        box = await self._start(spec, timeout_s)
        self._adopt(box)
        return box

    def _adopt(self, box: B) -> None:
        self._open.add(box)
        if self._disk is not None:
            self._disk.start()

    def _warm(self) -> WarmPools[B]:
        if self._pools is None:
            self._pools = WarmPools(self.start, idle_budget=idle_budget(), starts_at_once=STARTS_AT_ONCE)
        return self._pools

    def forget(self, box: B) -> None:
        """The box is closing; what was kept for it alone may go."""
        self._open.discard(box)

    def later(self, work: Coroutine[Any, Any, Any]) -> None:
        """Clean up behind the caller's back; `close` waits for it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: what could not be removed, of a lost engine say, is left to the reaper

    async def settled(self) -> None:
        """Until all clean-up under way is done. What failed is left to the reaper."""
        while self._tasks:
            await asyncio.gather(*list(self._tasks), return_exceptions=True)

    async def close(self) -> None:
        """End every sandbox and remove everything this provider made."""
        if self._disk is not None:
            await self._disk.close()
        if self._pools is not None:
            await self._pools.close()
        await asyncio.gather(*(box.close() for box in list(self._open)))
        await self.settled()
        await self._close_rest()

    name: str

    @abstractmethod
    async def find_prepared(self, key: str, base: str) -> str | None:
        """The image that was kept under a set-up's key, if it is here."""

    @abstractmethod
    async def keep_prepared(self, key: str, base: str, box: B) -> str:
        """Keep a box's files as an image over ``base``; the box may end for it."""

    @abstractmethod
    async def _start(self, spec: SandboxSpec, timeout_s: float) -> B:
        """Start one sandbox; leave nothing behind where that fails."""

    @abstractmethod
    async def _close_rest(self) -> None:
        """Remove networks, snapshots and connections, after all sandboxes are gone."""


async def all_or_none(starts: list[Coroutine[Any, Any, B]]) -> list[B]:
    """All results, or none: where one start fails, those that came up are closed and its error is raised."""
    tasks = [asyncio.ensure_future(start) for start in starts]
    try:
        results = await asyncio.gather(*tasks, return_exceptions=True)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(box.close() for box in results if not isinstance(box, BaseException)))
        raise
    failed = [result for result in results if isinstance(result, BaseException)]
    if failed:
        with contextlib.suppress(Exception):  # the first error is the one to tell
            await asyncio.gather(*(box.close() for box in results if not isinstance(box, BaseException)))
        raise failed[0]
    return [box for box in results if not isinstance(box, BaseException)]

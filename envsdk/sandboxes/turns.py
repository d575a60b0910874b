"""Turns at something of which only so much may go on at once: the urgent first, equals in the order they came."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class Turns:
    """At most ``at_once`` turns at a time, ``kept`` of them for the urgent alone. Use from one event loop."""

    def __init__(self, at_once: int, *, kept: int = 0) -> None:
        self._free = at_once
        self._kept = kept
        self._waiting: list[tuple[bool, int, asyncio.Future[Any]]] = []
        self._came = itertools.count()

    @asynccontextmanager
    async def turn(self, *, urgent: bool) -> AsyncIterator[None]:
        """A turn, waited for; one that is not urgent lets all urgent ones pass, those that come later too."""
        called = self.ask(urgent=urgent)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():  # called and cancelled at once: the turn is the next one's
                self.leave()
            raise
        try:
            yield
        finally:
            self.leave()

    def ask(self, *, urgent: bool) -> asyncio.Future[Any]:
        """A future that becomes `None` with the turn, which ends with `leave`; done otherwise, it is passed over."""
        called: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (not urgent, next(self._came), called))
        self._call()
        return called

    def leave(self) -> None:
        """Give a turn back."""
        self._free += 1
        self._call()

    def _call(self) -> None:
        while self._waiting:
            patient, _, called = self._waiting[0]
            if not called.done():
                if self._free <= (self._kept if patient else 0):
                    return
                self._free -= 1
                called.set_result(None)
            heapq.heappop(self._waiting)

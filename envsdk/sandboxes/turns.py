"""Turns at something of which only so much may go on at once: the urgent first, equals in the order they came."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """At most ``at_once`` turns at a time. Use from one event loop."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._came = itertools.count()

    @asynccontextmanager
    async def turn(self, *, urgent: bool) -> AsyncIterator[None]:
        """A turn, waited for; one that is not urgent lets all urgent ones pass, those that come later too."""
        await self._enter(urgent)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, urgent: bool) -> None:
        if self._free:
            self._free -= 1
            return
        called = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (not urgent, next(self._came), called))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():  # called and cancelled at once: the turn is the next one's
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            called = heapq.heappop(self._waiting)[-1]
            if not called.done():
                called.set_result(None)
                return
        self._free += 1

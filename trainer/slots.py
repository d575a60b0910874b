"""Who may run: so many episodes that act, and beside them so many whose end is being verified.

    slot -> acting -> verification free? -> slot goes back -> verifying -> done

An episode gives its slot back when its acting has ended and a verification is free for it, not before: so what is alive
on the machine stays bounded by the two numbers together, and a slow verifier keeps no engine waiting for as long as
verifications are free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Slots:
    """How many episodes may act, and how many be verified, at once; counts who waits to act."""

    def __init__(self, count: int, *, verifications: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._waiting = 0
        self.verifications = asyncio.Semaphore(verifications)

    @property
    def open(self) -> bool:
        """A slot is free and nobody waits for one."""
        return not self._waiting and not self._free.locked()

    async def acquire(self) -> None:
        """Wait for a slot."""
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    def release(self) -> None:
        """Give it back."""
        self._free.release()


class Seat:
    """One episode's slot: taken with `take`, given back by entering the seat to verify, or at last by `leave`.

    Args:
        slots: shared by all episodes.
        freed: told when the slot was given back.
    """

    def __init__(self, slots: Slots, *, freed: Callable[[], None]) -> None:
        self._slots = slots
        self._freed = freed
        self._holds_slot = False
        self.limit: asyncio.Timeout | None = None
        """The episode's limit, which stands still while it waits for a verification."""

    async def take(self) -> None:
        """Wait for a slot."""
        await self._slots.acquire()
        self._holds_slot = True

    def leave(self) -> None:
        """Give the slot back, where that was not done before."""
        if self._holds_slot:
            self._holds_slot = False
            self._slots.release()
            self._freed()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        until = None if self.limit is None else self.limit.when()
        left_s = None if until is None else until - loop.time()
        if self.limit is not None:
            self.limit.reschedule(None)
        await self._slots.verifications.acquire()
        if self.limit is not None and left_s is not None:
            self.limit.reschedule(loop.time() + left_s)
        self.leave()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._slots.verifications.release()

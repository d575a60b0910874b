"""Waiting that is seen: what takes longer than some seconds says now and then how it stands.

Not measured here: what is said is the caller's, and a wait that ends soon says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

EVERY_S = 10.0


async def told(
    work: Awaitable[T], say: Callable[[str], None], standing: Callable[[], str], *, every_s: float = EVERY_S
) -> T:
    """The result of ``work``; until then ``standing`` is asked and said every ``every_s`` seconds.

    Cancelling it cancels the work and waits for its end. Raises what the work raises.
    """
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=every_s))[0]:
            say(standing())
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

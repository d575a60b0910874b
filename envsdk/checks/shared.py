"""What tasks of one image share: looked up in one sandbox, once for all of them.

A family's draws often differ in their instruction alone. What the image holds is then the same for each, and is kept
for as long as a run of checks lasts, by everything that makes a sandbox what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any


class Shared:
    """Values by key, each made once; one that fails, or whose maker is cancelled, is made by the next who asks."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._locks: dict[Hashable, asyncio.Lock] = {}

    async def once(self, key: Hashable, make: Callable[[], Awaitable[Any]]) -> Any:
        """The value of ``make`` for this key."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._values:
                self._values[key] = await make()
            return self._values[key]

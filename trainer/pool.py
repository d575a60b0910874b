"""The ready pool: complete groups wait here for the learner, whenever they began.

Taken oldest first with carry-over; a group over the hard bound on lag is dropped when a batch is taken, and counted.
`take` waits without polling, and fails with the failure of whoever fills the pool, so a dead dispatcher cannot leave a
learner waiting for ever. One event loop owns a pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from trainer.group import CompleteGroup
from trainer.pool_policy import choose, too_old


class Pool:
    """Complete groups.

    Args:
        max_lag: versions that a group's oldest token may be behind when the group is taken.
    """

    def __init__(self, *, max_lag: int | None) -> None:
        self.max_lag = max_lag
        self.on_drop: Callable[[CompleteGroup, str], None] = lambda _group, _why: None
        self._ready: list[CompleteGroup] = []
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None

    @property
    def ready(self) -> tuple[CompleteGroup, ...]:
        """What waits now, in the order of completion."""
        return tuple(self._ready)

    def put(self, group: CompleteGroup) -> None:
        """Add a complete group."""
        self._ready.append(group)
        self._changed.set()

    def restore(self, groups: Sequence[CompleteGroup]) -> None:
        """Fill the pool from a checkpoint."""
        self._ready = list(groups)
        self._changed.set()

    def fail(self, error: BaseException) -> None:
        """Nothing more will come: every `take` raises ``error`` from now on."""
        self._failure = error
        self._changed.set()

    def drop_too_old(self, version: int) -> list[CompleteGroup]:
        """Remove groups over the bound on lag under ``version``."""
        stale = too_old(self._ready, version=version, max_lag=self.max_lag)
        for group in stale:
            self._ready.remove(group)
            self.on_drop(group, "too_old")
        return stale

    async def take(self, count: int, *, version: int) -> list[CompleteGroup]:
        """Wait for ``count`` groups and remove them.

        The version does not change while the learner waits, so the bound need be checked only once, up front.
        """
        while True:
            if self._failure is not None:
                raise self._failure
            self.drop_too_old(version)
            chosen = choose(self._ready, count=count, policy="oldest_complete_first")
            if chosen is not None:
                for group in chosen:
                    self._ready.remove(group)
                return chosen
            self._changed.clear()
            await self._changed.wait()

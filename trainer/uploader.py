"""Episodes on their way to the registry: in the background, in batches, never in the way of a run.

The ledger is what counts; the registry is told as it can be. A batch that cannot be sent is kept and sent again with
the next one (episode ids are idempotency keys there), and what is left at the end is reported, not lost: the run's
``episodes.jsonl`` can be appended later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from envsdk.episode.record import EpisodeRecord
from envsdk.errors import EnvsdkError

Send = Callable[[Sequence[EpisodeRecord]], object]
_PAUSE_S = 1.0


class Uploader:
    """Sends records with ``send``, which blocks and is run in a thread.

    Args:
        send: delivers a batch or raises.
        warn: hears of every failed attempt.
    """

    def __init__(self, send: Send, *, warn: Callable[[str], None] = lambda _: None, pause_s: float = _PAUSE_S) -> None:
        self._send = send
        self._warn = warn
        self._pause_s = pause_s
        self._waiting: list[EpisodeRecord] = []
        self.sent = 0

    @property
    def waiting(self) -> int:
        """Records that the registry has not acknowledged."""
        return len(self._waiting)

    def add(self, record: EpisodeRecord) -> None:
        """Take a record; returns at once."""
        self._waiting.append(record)

    async def serve(self) -> None:
        """Send until cancelled."""
        while True:
            await self.flush()
            await asyncio.sleep(self._pause_s)

    async def flush(self) -> None:
        """Send what waits now; on failure it keeps waiting."""
        batch = list(self._waiting)
        if not batch:
            return
        try:
            await asyncio.to_thread(self._send, batch)
        except EnvsdkError as error:
            self._warn(f"the registry did not take {len(batch)} episodes, they are kept: {error}")
            return
        del self._waiting[: len(batch)]
        self.sent += len(batch)

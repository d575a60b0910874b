"""Episodes on their way to the registry: in the background, in batches, never in the way of a run.

The ledger is what counts; the registry is told as it can be. A batch that cannot be sent is kept and sent again with
the next one (episode ids are idempotency keys there), and what is left at the end is reported, not lost: the run's
``episodes.jsonl`` can be appended later. What the registry refuses, or takes for an episode that it has, is said: else
a run's outcomes could be missing there in silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from envsdk.episode.record import EpisodeRecord
from envsdk.errors import EnvsdkError

_PAUSE_S = 1.0
_DOUBLINGS = 6
_BATCH = 500


class Refused(Protocol):
    """A record that the registry did not take; `registry.acceptance.Rejected` is one."""

    @property
    def which(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def why(self) -> str: ...


class Receipt(Protocol):
    """What became of a batch; `registry.outcomes.AppendResult` is one."""

    @property
    def duplicate(self) -> int: ...
    @property
    def rejected(self) -> Sequence[Refused]: ...


Send = Callable[[Sequence[EpisodeRecord]], Receipt]


class Uploader:
    """Sends records with ``send``, which blocks and is run in a thread.

    Args:
        send: delivers a batch or raises.
        warn: hears of every failed attempt, of what was refused, and of what was there although it was never sent.
    """

    def __init__(self, send: Send, *, warn: Callable[[str], None] = lambda _: None, pause_s: float = _PAUSE_S) -> None:
        self._send = send
        self._warn = warn
        self._pause_s = pause_s
        self._waiting: list[EpisodeRecord] = []
        self._perhaps_there: set[str] = set()
        self._failures = 0
        self.sent = 0

    @property
    def waiting(self) -> int:
        """Records that the registry has not acknowledged."""
        return len(self._waiting)

    def add(self, record: EpisodeRecord) -> None:
        """Take a record; returns at once."""
        self._waiting.append(record)

    def add_again(self, records: Iterable[EpisodeRecord]) -> None:
        """Take records that may have been sent, by a process that was killed say; the registry counts each once."""
        for record in records:
            self._perhaps_there.add(record.episode_id)
            self._waiting.append(record)

    async def serve(self) -> None:
        """Send until cancelled; the longer the registry fails, the longer the pauses."""
        while True:
            await self.flush()
            await asyncio.sleep(self._pause_s * 2 ** min(self._failures, _DOUBLINGS))

    async def flush(self) -> None:
        """Send what waits now, in batches; from the first that fails on it keeps waiting."""
        left = len(self._waiting)
        while left > 0:
            batch = self._waiting[: min(left, _BATCH)]
            if not await self._delivered(batch):
                return
            del self._waiting[: len(batch)]
            self.sent += len(batch)
            left -= len(batch)

    async def _delivered(self, batch: Sequence[EpisodeRecord]) -> bool:
        ids = {record.episode_id for record in batch}
        known = len(ids & self._perhaps_there)
        self._perhaps_there |= ids  # cut off from here on, nobody knows how much of it has arrived
        try:
            receipt = await asyncio.to_thread(self._send, batch)
        except Exception as error:  # noqa: BLE001 - whatever breaks on the way to the registry ends no run, and is said
            self._failures += 1
            what = str(error) if isinstance(error, EnvsdkError) else f"{type(error).__name__}: {error}"
            self._warn(f"the registry did not take {len(batch)} episodes, they are kept: {what}")
            return False
        self._failures = 0
        self._perhaps_there -= ids
        if receipt.rejected:
            first = receipt.rejected[0]
            self._warn(
                f"the registry refused {len(receipt.rejected)} of {len(batch)} episodes, "
                f"the first ({first.which}) as {first.code}: {first.why}"
            )
        if receipt.duplicate > known:
            self._warn(
                f"the registry had {receipt.duplicate - known} of {len(batch)} episodes that were never sent: "
                "it took them for another run's of the same ids"
            )
        return True

"""The replicas that serve, and the way a turn finds one.

A replica leaves the rotation when a weight update failed on it, and never comes back by itself: its weights are not
known. With the last one gone every turn raises, so a run ends with a message and not with silence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from envsdk.errors import EngineError
from trainer.engines.base import Engine
from trainer.router import Router


class Rotation:
    """Replicas behind a sticky router. One event loop owns it."""

    def __init__(self, replicas: Sequence[Engine], *, router: Router | None = None) -> None:
        self.replicas = tuple(replicas)
        self._router = router or Router(len(self.replicas))
        self._out: dict[int, str] = {}

    @property
    def active(self) -> list[Engine]:
        """Replicas in rotation, in their order; one that died is out."""
        return [self.replicas[number] for number in self._serving()]

    @property
    def removed(self) -> dict[str, str]:
        """Why each replica that is out left, by name."""
        dead = {replica.name: "died" for replica in self.replicas if not replica.alive}
        return dead | {self.replicas[number].name: why for number, why in self._out.items()}

    def remove(self, replica: Engine, why: str) -> None:
        """Take a replica out; turns that run on it fail when its engine is closed."""
        self._out[self.replicas.index(replica)] = why

    @asynccontextmanager
    async def turn(self, session: str) -> AsyncIterator[Engine]:
        """The replica of a session's next turn, counted as busy meanwhile.

        Raises:
            EngineError: ``no_replica``: none is in rotation.
        """
        self.require()
        placement = self._router.start_turn(session, among=self._serving())
        try:
            yield self.replicas[placement.replica]
        finally:
            self._router.end_turn(session)

    def require(self) -> None:
        """Raise where nobody is left to serve.

        Raises:
            EngineError: ``no_replica``: none is in rotation.
        """
        if not self._serving():
            why = "; ".join(f"{name}: {reason}" for name, reason in self.removed.items())
            raise EngineError(
                f"no replica is in rotation ({why})",
                code="no_replica",
                hint="see why each left; `envsdk train --resume` goes on from the last checkpoint",
            )

    def _serving(self) -> list[int]:
        return [n for n, replica in enumerate(self.replicas) if n not in self._out and replica.alive]

    def release(self, session: str) -> None:
        """The session has ended."""
        self._router.release(session)

    async def close(self) -> None:
        """Close every replica, in rotation or not."""
        for replica in self.replicas:
            await replica.close()

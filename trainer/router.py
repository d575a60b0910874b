"""Sticky least-loaded routing: a conversation goes back to the replica that holds its prefix.

A new session goes to the replica with the fewest sessions pinned to it; a later turn stays unless its replica has more
than ``margin`` turns in flight above the least loaded one, and then moves with its pin. Ties are broken at random,
since a fixed choice sends every burst to replica 0. Sessions end explicitly, however they ended. Ids are compared
whole. Not promised: thread safety; one event loop owns a router.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a turn runs. ``repinned``: its pin moved. ``tied``: the candidates, ascending; a kept pin stands alone."""

    replica: int
    repinned: bool
    tied: tuple[int, ...]


class Router:
    """Places turns on replicas numbered from 0.

    Args:
        replicas: how many there are.
        margin: turns in flight above the least loaded replica that are tolerated before a pin is broken.
        uniform: a number in [0, 1) a call, for ties.
    """

    def __init__(self, replicas: int, *, margin: int = 2, uniform: Callable[[], float] = random.random) -> None:
        if replicas < 1:
            raise ValueError(f"{replicas} replicas: at least one")
        self._margin = margin
        self._uniform = uniform
        self._pins: dict[str, int] = {}
        self._turns: dict[str, deque[int]] = {}
        self._active = [0] * replicas
        self._inflight = [0] * replicas

    @property
    def active(self) -> tuple[int, ...]:
        """[R] sessions pinned to each replica and not released."""
        return tuple(self._active)

    @property
    def inflight(self) -> tuple[int, ...]:
        """[R] turns running on each replica."""
        return tuple(self._inflight)

    def start_turn(self, session: str, *, among: Sequence[int] | None = None) -> Placement:
        """Place the session's next turn and count it in flight.

        Args:
            session: its id.
            among: the replicas in rotation, ascending; all by default. A pin on one that is out of rotation is broken.

        Raises:
            ValueError: no replica is in rotation.
        """
        replicas = range(len(self._active)) if among is None else among
        if not replicas:
            raise ValueError("no replica is in rotation")
        pin = self._pins.get(session)
        if pin is None:
            replica, tied = self._least(self._active, replicas)
        elif pin in replicas and self._inflight[pin] - min(self._inflight[r] for r in replicas) <= self._margin:
            replica, tied = pin, (pin,)
        else:
            replica, tied = self._least(self._inflight, replicas)
        repinned = pin is not None and replica != pin
        if replica != pin:
            self._unpin(session)
            self._pins[session] = replica
            self._active[replica] += 1
        self._inflight[replica] += 1
        self._turns.setdefault(session, deque()).append(replica)
        return Placement(replica, repinned, tied)

    def end_turn(self, session: str) -> int | None:
        """The session's earliest turn in flight has ended; returns its replica, `None` where none was in flight."""
        turns = self._turns.get(session)
        if not turns:
            return None
        replica = turns.popleft()
        self._inflight[replica] -= 1
        if not turns:
            del self._turns[session]
        return replica

    def release(self, session: str) -> None:
        """End the session's pin, whatever ended it; unknown or already released sessions are ignored."""
        self._unpin(session)

    def _unpin(self, session: str) -> None:
        pin = self._pins.pop(session, None)
        if pin is not None:
            self._active[pin] -= 1

    def _least(self, load: Sequence[int], replicas: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        lowest = min(load[r] for r in replicas)
        tied = tuple(r for r in replicas if load[r] == lowest)
        return tied[int(self._uniform() * len(tied))], tied

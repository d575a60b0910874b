"""Warm pools: sandboxes started before they are asked for, one pool for each distinct spec.

A pool's key is a hash of the whole `SandboxSpec` (image, resources, network, user, ...). Its target follows measured
demand: takes per second, times what a start takes, with a margin; `prewarm` raises it for a while. Idle sandboxes are
asked for an answer every few seconds. One is handed out at once where it answered a moment ago and its link stands,
else asked first; closed when it grew old; and it never comes back after use. All pools of a provider share one
budget of idle sandboxes and one queue of starts, of which a part is kept for takers.

An empty pool starts one for its caller; one that comes to stand ready meanwhile is handed to whoever waits longest for
a start to begin. Not promised: a warm sandbox.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from envsdk.errors import EnvsdkError
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.turns import Turns

MAX_AGE_S = 900.0
DEMAND_WINDOW_S = 30.0
PREWARM_S = 120.0
TICK_S = 1.0
MARGIN = 1.5
IDLE_MIB = 256
REFILL_PAUSE_S = 0.05
ASK_EVERY_S = 5.0
FRESH_S = 10.0
STARTS_AT_ONCE = max(4, 4 * (os.cpu_count() or 1))
_KEPT_SHARE = 4
"""One start in so many waits for takers, so that none of them waits for a crowd of starts ahead of need."""


class Poolable(Protocol):
    """What a pool needs of a sandbox."""

    @property
    def is_linked(self) -> bool: ...
    async def responds(self) -> bool: ...
    async def close(self) -> None: ...


B = TypeVar("B", bound=Poolable)


def pool_key(spec: SandboxSpec) -> str:
    """Specs with equal keys may share a pool."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:16]


def idle_budget() -> int:
    """Most idle sandboxes that this machine should hold: one for each 256 MiB of its memory, at least four."""
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return max(4, memory_mib // IDLE_MIB)


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Counts since the start; ``idle`` is now."""

    idle: int
    warm_takes: int
    cold_takes: int
    unhealthy: int
    aged_out: int


@dataclass(slots=True, eq=False)
class _Idle(Generic[B]):
    """One idle sandbox: when it was started, last answered, and was last asked."""

    box: B
    since: float
    answered: float
    asked: float


@dataclass(slots=True)
class _Pool(Generic[B]):
    spec: SandboxSpec
    idle: deque[_Idle[B]] = field(default_factory=deque)
    takes: deque[float] = field(default_factory=deque)
    takers: deque[asyncio.Future[B | None]] = field(default_factory=deque)
    starting: int = 0
    wanted: int = 0
    wanted_until: float = 0.0
    start_s: float = 0.5
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def target(self, now: float) -> int:
        """Idle sandboxes that should be at hand: those taken while one starts, with a margin, or what was asked for."""
        while self.takes and self.takes[0] < now - DEMAND_WINDOW_S:
            self.takes.popleft()
        rate = len(self.takes) / DEMAND_WINDOW_S
        asked = self.wanted if now < self.wanted_until else 0
        return max(asked, math.ceil(rate * self.start_s * MARGIN))

    def one_less_starting(self) -> None:
        """A start has ended, well or not."""
        self.starting -= 1
        self.changed.set()


class WarmPools(Generic[B]):
    """All pools of one provider.

    Args:
        start: starts one sandbox; its errors reach the taker, and are kept from the refill.
        idle_budget: most idle sandboxes, all pools together.
        starts_at_once: most starts at a time; takers wait their turn in order, before any that are to stand ready.
    """

    def __init__(
        self,
        start: Callable[[SandboxSpec, float], Awaitable[B]],
        *,
        idle_budget: int,
        starts_at_once: int,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._start = start
        self._idle_budget = idle_budget
        self._turns = Turns(starts_at_once, kept=starts_at_once // _KEPT_SHARE)
        self._clock = clock or asyncio.get_running_loop().time
        self._pools: dict[str, _Pool[B]] = {}
        self._waiting_takers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._tick: asyncio.Task[None] | None = None
        self._closed = False
        self._counts = {"warm_takes": 0, "cold_takes": 0, "unhealthy": 0, "aged_out": 0}

    def stats(self) -> PoolStats:
        """Counts of all pools together."""
        return PoolStats(idle=self._idle_total(), **self._counts)

    async def take(self, spec: SandboxSpec, timeout_s: float) -> B:
        """A probed warm sandbox, or a new one. Raises what `start` raises."""
        pool = self._pool(spec)
        pool.takes.append(self._clock())
        self._ensure_tick()
        while pool.idle:
            one = self._next(pool)
            if self._clock() - one.since > MAX_AGE_S:
                self._let_go(one.box, "aged_out")
            elif await self._is_whole(pool, one):
                self._counts["warm_takes"] += 1
                self._refill(pool)
                return one.box
            else:
                self._let_go(one.box, "unhealthy")
        self._waiting_takers += 1
        try:
            handed = await self._turn_or_box(pool)
            if handed is None:
                return await self._cold(pool, timeout_s)
        finally:
            self._waiting_takers -= 1
        self._counts["warm_takes"] += 1
        self._refill(pool)
        return handed

    async def _turn_or_box(self, pool: _Pool[B]) -> B | None:
        """A box that came to stand ready, or `None` with a turn to start one; whichever is first."""
        place: asyncio.Future[B | None] = self._turns.ask(urgent=True)
        pool.takers.append(place)
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # given and cancelled at once: it is the next one's
                self._give_on(pool, place.result())
            raise
        finally:
            pool.takers.remove(place)

    def _give_on(self, pool: _Pool[B], handed: B | None) -> None:
        if handed is None:
            self._turns.leave()
        else:
            self._stand_ready(pool, handed)

    async def _cold(self, pool: _Pool[B], timeout_s: float) -> B:
        """Start one in the turn that the caller has."""
        self._counts["cold_takes"] += 1
        try:
            return await self._timed_start(pool, timeout_s)
        finally:
            self._turns.leave()

    def _next(self, pool: _Pool[B]) -> _Idle[B]:
        """The oldest of those that need not be asked, else the oldest of all."""
        one = next(filter(self._is_fresh, pool.idle), pool.idle[0])
        pool.idle.remove(one)
        return one

    def _is_fresh(self, one: _Idle[B]) -> bool:
        return self._clock() - one.answered <= FRESH_S

    async def _is_whole(self, pool: _Pool[B], one: _Idle[B]) -> bool:
        if not one.box.is_linked:
            return False
        if self._is_fresh(one):
            return True
        try:
            return await one.box.responds()
        except asyncio.CancelledError:  # its taker has gone: it stays for the next one
            pool.idle.appendleft(one)
            raise

    async def _ask(self, pool: _Pool[B], one: _Idle[B]) -> None:
        if await one.box.responds():
            one.answered = self._clock()
        elif one in pool.idle:
            pool.idle.remove(one)
            self._let_go(one.box, "unhealthy")

    async def prewarm(self, spec: SandboxSpec, n: int) -> int:
        """Have ``n`` idle ones for the next while, within the budget; returns how many there are.

        Raises `SandboxError` where none can be started.
        """
        pool = self._pool(spec)
        self._ensure_tick()
        pool.wanted, pool.wanted_until = n, self._clock() + PREWARM_S
        missing = min(n - len(pool.idle) - pool.starting, self._room())
        results = await asyncio.gather(*(self._adding(pool) for _ in range(missing)), return_exceptions=True)
        while pool.starting and len(pool.idle) < n:
            pool.changed.clear()
            await pool.changed.wait()
        failed = [result for result in results if isinstance(result, BaseException)]
        if failed and not pool.idle:
            raise failed[0]
        return len(pool.idle)

    async def close(self) -> None:
        """Close every idle sandbox and wait for starts under way."""
        self._closed = True
        if self._tick is not None:
            self._tick.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        idle = [one.box for pool in self._pools.values() for one in pool.idle]
        self._pools.clear()
        await asyncio.gather(*(box.close() for box in idle))

    def _pool(self, spec: SandboxSpec) -> _Pool[B]:
        return self._pools.setdefault(pool_key(spec), _Pool(spec))

    def _idle_total(self) -> int:
        return sum(len(pool.idle) for pool in self._pools.values())

    def _room(self) -> int:
        return self._idle_budget - sum(len(pool.idle) + pool.starting for pool in self._pools.values())

    async def _timed_start(self, pool: _Pool[B], timeout_s: float) -> B:
        began = self._clock()
        box = await self._start(pool.spec, timeout_s)
        pool.start_s = 0.7 * pool.start_s + 0.3 * (self._clock() - began)
        return box

    def _adding(self, pool: _Pool[B], *, pause_s: float = 0.0) -> asyncio.Task[None]:
        """One more idle sandbox, on its way; counted at once, as many may be asked for before the first one begins."""
        pool.starting += 1
        task = asyncio.ensure_future(self._add(pool, pause_s))
        task.add_done_callback(lambda _: pool.one_less_starting())
        return task

    async def _add(self, pool: _Pool[B], pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        async with self._turns.turn(urgent=False):
            box = await self._timed_start(pool, 60.0)
            if not self._closed:
                self._stand_ready(pool, box)  # before the turn goes on, so that the box is for the first who waits
                return
        await box.close()

    def _stand_ready(self, pool: _Pool[B], box: B) -> None:
        """A box just started is the next taker's, if one waits."""
        if waiting := next((place for place in pool.takers if not place.done()), None):
            waiting.set_result(box)
            return
        now = self._clock()
        pool.idle.append(_Idle(box, since=now, answered=now, asked=now))

    def _refill(self, pool: _Pool[B]) -> None:
        """Start what is missing, unless takers wait for a start themselves; a crowd of takers is served first."""
        if self._closed or self._waiting_takers:
            return
        missing = pool.target(self._clock()) - len(pool.idle) - pool.starting
        for _ in range(min(missing, self._room())):
            self._later(self._quietly(self._adding(pool, pause_s=REFILL_PAUSE_S)))

    @staticmethod
    async def _quietly(adding: Awaitable[None]) -> None:
        # A refill that fails shows again at the next take, whose caller gets the error.
        try:
            await adding
        except EnvsdkError:
            return

    def _let_go(self, box: B, why: str) -> None:
        self._counts[why] += 1
        self._later(box.close())

    def _later(self, work: Awaitable[None]) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _ensure_tick(self) -> None:
        if self._tick is None and not self._closed:
            self._tick = asyncio.ensure_future(self._keep())

    async def _keep(self) -> None:
        while not self._closed:
            await asyncio.sleep(TICK_S)
            self.sweep()

    def sweep(self) -> None:
        """One round of upkeep: the old and the superfluous go, the silent are asked, the missing are started."""
        now = self._clock()
        for key, pool in list(self._pools.items()):
            while pool.idle and now - pool.idle[0].since > MAX_AGE_S:
                self._let_go(pool.idle.popleft().box, "aged_out")
            while len(pool.idle) > pool.target(now) and now - pool.idle[0].since > DEMAND_WINDOW_S:
                self._let_go(pool.idle.popleft().box, "aged_out")
            for one in pool.idle:
                if now - one.asked >= ASK_EVERY_S:
                    one.asked = now
                    self._later(self._ask(pool, one))
            if not (pool.idle or pool.starting or pool.takes or pool.takers) and now >= pool.wanted_until:
                del self._pools[key]
            else:
                self._refill(pool)

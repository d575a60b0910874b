"""Sandboxes that are no more than a few flags, what starts them, and a clock the test turns: for warm pools."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.pools import WarmPools

SPEC = SandboxSpec(image="a")


@dataclass(eq=False)
class Box:
    is_healthy: bool = True
    is_closed: bool = False
    is_linked: bool = True
    times_asked: int = 0
    gate: asyncio.Event | None = None

    async def responds(self) -> bool:
        self.times_asked += 1
        if self.gate is not None:
            await self.gate.wait()
        return self.is_healthy

    async def close(self) -> None:
        self.is_closed = True


@dataclass
class Starter:
    """Starts boxes, at once or when `gate` opens; fails while `error` is set."""

    made: list[Box] = field(default_factory=list)
    gate: asyncio.Event | None = None
    error: Exception | None = None
    now: int = 0
    most: int = 0

    async def __call__(self, spec: SandboxSpec, timeout_s: float) -> Box:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.error is not None:
                raise self.error
            box = Box()
            self.made.append(box)
            return box
        finally:
            self.now -= 1


@dataclass
class Clock:
    time_s: float = 1000.0

    def __call__(self) -> float:
        return self.time_s


def make(starter: Starter, clock: Clock, *, idle_budget: int = 10, starts_at_once: int = 4) -> WarmPools[Box]:
    return WarmPools(starter, idle_budget=idle_budget, starts_at_once=starts_at_once, clock=clock)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)

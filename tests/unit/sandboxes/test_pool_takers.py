"""Who waits for a start gets the first box that comes to stand ready, in order, and no crowd of starts comes before."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.pools import WarmPools
from tests.fakes.pools import SPEC, Box, Clock, Starter, make, settle

pytestmark = pytest.mark.usefixtures("no_pause")


@dataclass
class ByHand(Starter):
    """Starts end one by one, the first begun first, each when told to."""

    running: list[tuple[SandboxSpec, asyncio.Future[None]]] = field(default_factory=list)

    async def __call__(self, spec: SandboxSpec, timeout_s: float) -> Box:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.running.append((spec, gate))
        await gate
        self.made.append(Box())
        return self.made[-1]

    async def end_first_and_stop_where(self, reached: Callable[[], bool]) -> None:
        self.running.pop(0)[1].set_result(None)
        for _ in range(20):
            if reached():
                return
            await asyncio.sleep(0)
        raise AssertionError("never reached")

    async def end_first(self) -> Box:
        self.running.pop(0)[1].set_result(None)
        await settle()
        return self.made[-1]


async def taking(warm: WarmPools[Box], n: int, spec: SandboxSpec = SPEC) -> list[asyncio.Task[Box]]:
    """So many takers, waiting in this order."""
    tasks = [asyncio.create_task(warm.take(spec, 5.0)) for _ in range(n)]
    await settle()
    return tasks


async def end(warm: WarmPools[Box], *tasks: asyncio.Task) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await warm.close()


async def test_a_box_that_comes_to_stand_ready_goes_to_the_taker_that_waits_longest_for_a_start() -> None:
    starter = ByHand()
    warm = make(starter, Clock(), starts_at_once=4)
    warming = asyncio.create_task(warm.prewarm(SPEC, 8))
    await settle()
    starts_itself, first, second = await taking(warm, 3)
    box = await starter.end_first()
    assert first.done()
    assert first.result() is box
    assert not starts_itself.done()
    assert not second.done()
    assert (warm.stats().warm_takes, warm.stats().idle) == (1, 0)
    await end(warm, warming, starts_itself, second)


async def test_a_box_is_handed_to_no_taker_of_another_spec() -> None:
    starter = ByHand()
    warm = make(starter, Clock(), starts_at_once=4)
    warming = asyncio.create_task(warm.prewarm(SPEC, 3))
    await settle()
    takers = await taking(warm, 3, SandboxSpec(image="b"))
    await starter.end_first()
    assert not any(taker.done() for taker in takers)
    assert warm.stats().idle == 1
    await end(warm, warming, *takers)


async def test_a_taker_waits_for_no_crowd_of_starts_ahead_of_need() -> None:
    starter = ByHand()
    warm = make(starter, Clock(), idle_budget=40, starts_at_once=8)
    warming = asyncio.create_task(warm.prewarm(SPEC, 40))
    await settle()
    other = SandboxSpec(image="b")
    (taker,) = await taking(warm, 1, other)
    assert [spec for spec, _ in starter.running] == [SPEC] * 6 + [other]
    await end(warm, warming, taker)


async def test_a_box_handed_to_a_taker_that_goes_at_that_moment_is_the_next_ones() -> None:
    starter = ByHand()
    warm = make(starter, Clock(), starts_at_once=4)
    warming = asyncio.create_task(warm.prewarm(SPEC, 3))
    await settle()
    starts_itself, gets_the_box, gets_the_turn, waits_on = await taking(warm, 4)
    await starter.end_first_and_stop_where(lambda: any(place.done() for place in warm._pool(SPEC).takers))
    gets_the_box.cancel()  # before it has woken
    await settle()
    assert gets_the_box.cancelled()
    assert waits_on.result() is starter.made[0]
    await end(warm, warming, starts_itself, gets_the_turn)


async def test_a_turn_given_to_a_taker_that_goes_at_that_moment_is_the_next_ones() -> None:
    starter = ByHand()
    warm = make(starter, Clock(), starts_at_once=1)
    running, first, second = await taking(warm, 3)
    await starter.end_first_and_stop_where(lambda: any(place.done() for place in warm._pool(SPEC).takers))
    first.cancel()
    await settle()
    assert first.cancelled()
    assert len(starter.running) == 1
    assert await starter.end_first() is second.result()
    await end(warm, running)

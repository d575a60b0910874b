"""Warm pools over fake sandboxes and a clock the test turns."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes import pools
from envsdk.sandboxes.base import Limits, SandboxSpec
from envsdk.sandboxes.pools import WarmPools, pool_key

SPEC = SandboxSpec(image="a")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "REFILL_PAUSE_S", 0.0)


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


def test_equal_specs_share_a_pool_and_any_difference_parts_them() -> None:
    variants = [
        SPEC,
        SPEC.model_copy(update={"user": "root"}),
        SPEC.model_copy(update={"network": "public"}),
        SPEC.model_copy(update={"limits": Limits(pids=3)}),
        SPEC.model_copy(update={"image": "b"}),
    ]
    assert len({pool_key(spec) for spec in variants}) == len(variants)
    assert pool_key(SandboxSpec(image="a")) == pool_key(SPEC)


async def test_an_empty_pool_starts_one_for_its_caller() -> None:
    starter = Starter()
    warm = make(starter, Clock())
    box = await warm.take(SPEC, 5)
    assert starter.made[0] is box
    assert warm.stats().cold_takes == 1
    await warm.close()


async def test_prewarmed_boxes_are_handed_out_oldest_first() -> None:
    starter = Starter()
    warm = make(starter, Clock())
    assert await warm.prewarm(SPEC, 3) == 3
    taken = [await warm.take(SPEC, 5) for _ in range(3)]
    assert taken == starter.made[:3]
    assert warm.stats().warm_takes == 3
    await warm.close()


async def test_a_prewarmed_pool_serves_no_other_spec() -> None:
    starter = Starter()
    warm = make(starter, Clock())
    await warm.prewarm(SPEC, 1)
    await warm.take(SPEC.model_copy(update={"user": "root"}), 5)
    assert warm.stats().cold_takes == 1
    await warm.close()


async def test_one_box_is_never_handed_to_two_takers() -> None:
    starter = Starter()
    warm = make(starter, Clock(), idle_budget=50)
    await warm.prewarm(SPEC, 20)
    taken = await asyncio.gather(*(warm.take(SPEC, 5) for _ in range(40)))
    assert len(set(map(id, taken))) == 40
    await warm.close()


async def test_an_unhealthy_box_is_closed_and_the_next_one_taken() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 2)
    starter.made[0].is_healthy = False
    clock.time_s += pools.FRESH_S + 1
    assert await warm.take(SPEC, 5) is starter.made[1]
    await settle()
    assert starter.made[0].is_closed
    assert warm.stats().unhealthy == 1
    await warm.close()


async def test_a_box_whose_taker_is_cancelled_while_it_is_asked_stays_for_the_next() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 1)
    starter.made[0].gate = asyncio.Event()
    clock.time_s += pools.FRESH_S + 1
    taking = asyncio.ensure_future(warm.take(SPEC, 5))
    await settle()
    taking.cancel()
    await settle()
    starter.made[0].gate.set()
    assert await warm.take(SPEC, 5) is starter.made[0]
    await warm.close()


async def test_one_that_answered_a_moment_ago_is_handed_out_without_being_asked_again() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 1)
    clock.time_s += pools.FRESH_S - 1
    assert (await warm.take(SPEC, 5)).times_asked == 0
    await warm.close()


async def test_those_that_must_be_asked_first_wait_behind_those_that_need_not() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 1)
    clock.time_s += pools.FRESH_S + 1
    await warm.prewarm(SPEC, 2)
    assert [await warm.take(SPEC, 5) for _ in range(2)] == starter.made[1::-1]
    assert [box.times_asked for box in starter.made[:2]] == [1, 0]
    await warm.close()


async def test_one_whose_link_broke_is_never_handed_out_however_fresh() -> None:
    starter = Starter()
    warm = make(starter, Clock())
    await warm.prewarm(SPEC, 2)
    starter.made[0].is_linked = False
    assert await warm.take(SPEC, 5) is starter.made[1]
    await settle()
    assert starter.made[0].is_closed
    await warm.close()


async def test_idle_ones_are_asked_now_and_then_and_the_silent_go() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 2)
    starter.made[0].is_healthy = False
    for _ in range(3):
        clock.time_s += pools.ASK_EVERY_S / 2
        warm.sweep()
        await settle()
    assert [box.times_asked for box in starter.made[:2]] == [1, 1]
    assert [box.is_closed for box in starter.made[:2]] == [True, False]
    clock.time_s += pools.FRESH_S - 3 * pools.ASK_EVERY_S / 2 + 1
    assert (await warm.take(SPEC, 5)) is starter.made[1]
    assert starter.made[1].times_asked == 1
    await warm.close()


async def test_a_crowd_is_served_before_its_sandboxes_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "REFILL_PAUSE_S", 60.0)
    starter = Starter()
    warm = make(starter, Clock())
    await warm.prewarm(SPEC, 4)
    await asyncio.gather(*(warm.take(SPEC, 5) for _ in range(4)))
    await settle()
    assert len(starter.made) == 4
    for task in list(warm._tasks):
        task.cancel()
    await warm.close()


async def test_an_old_box_is_not_handed_out() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 1)
    clock.time_s += pools.MAX_AGE_S + 1
    assert await warm.take(SPEC, 5) is not starter.made[0]
    await settle()
    assert starter.made[0].is_closed
    await warm.close()


async def test_the_sweep_closes_the_old_without_a_take() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 2)
    clock.time_s += pools.MAX_AGE_S + 1
    warm.sweep()
    await settle()
    assert [box.is_closed for box in starter.made[:2]] == [True, True]
    await warm.close()


async def test_a_take_is_made_up_for_while_prewarming_holds() -> None:
    starter = Starter()
    warm = make(starter, Clock())
    await warm.prewarm(SPEC, 2)
    await warm.take(SPEC, 5)
    await settle()
    assert warm.stats().idle == 2
    await warm.close()


async def test_a_crowd_that_takes_at_one_moment_is_made_up_for_once() -> None:
    starter = Starter()
    pools_ = make(starter, Clock(), idle_budget=40, starts_at_once=40)
    await pools_.prewarm(SPEC, 8)
    await asyncio.gather(*(pools_.take(SPEC, 5.0) for _ in range(8)))  # nobody waits, so no start begins in between
    await settle()
    assert len(starter.made) == 16
    await pools_.close()


async def test_the_budget_holds_however_many_ask_at_one_moment() -> None:
    starter = Starter(gate=asyncio.Event())
    pools_ = make(starter, Clock(), idle_budget=6, starts_at_once=40)
    warming = [asyncio.create_task(pools_.prewarm(SandboxSpec(image=name), 4)) for name in "abc"]
    await settle()
    starter.gate.set()
    await asyncio.gather(*warming)
    assert len(starter.made) == 6
    await pools_.close()


async def test_a_prewarm_cancelled_before_it_began_is_not_counted_for_ever() -> None:
    pools_ = make(Starter(), Clock(), idle_budget=4)
    warming = asyncio.create_task(pools_.prewarm(SPEC, 4))
    await asyncio.sleep(0)
    warming.cancel()
    await asyncio.gather(warming, return_exceptions=True)
    assert await pools_.prewarm(SandboxSpec(image="b"), 4) == 4
    await pools_.close()


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


async def test_demand_alone_fills_a_pool() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    for _ in range(90):
        clock.time_s += 0.1
        await warm.take(SPEC, 5)
    warm.sweep()
    await settle()
    assert warm.stats().idle >= 1
    await warm.close()


async def test_a_pool_that_nobody_asks_empties_again() -> None:
    starter, clock = Starter(), Clock()
    warm = make(starter, clock)
    await warm.prewarm(SPEC, 3)
    clock.time_s += pools.PREWARM_S + pools.DEMAND_WINDOW_S + 1
    warm.sweep()
    await settle()
    assert warm.stats().idle == 0
    await warm.close()


async def test_the_budget_bounds_all_pools_together() -> None:
    starter = Starter()
    warm = make(starter, Clock(), idle_budget=5)
    await warm.prewarm(SPEC, 4)
    assert await warm.prewarm(SPEC.model_copy(update={"user": "root"}), 4) == 1
    assert warm.stats().idle == 5
    await warm.close()


async def test_no_more_start_at_a_time_than_allowed() -> None:
    starter = Starter(gate=asyncio.Event())
    warm = make(starter, Clock(), starts_at_once=3)
    takers = [asyncio.ensure_future(warm.take(SPEC, 5)) for _ in range(10)]
    await settle()
    assert starter.most == 3
    assert starter.gate is not None
    starter.gate.set()
    await asyncio.gather(*takers)
    assert starter.most == 3
    await warm.close()


async def test_waiting_takers_are_served_in_the_order_they_came() -> None:
    starter = Starter(gate=asyncio.Event())
    warm = make(starter, Clock(), starts_at_once=1)
    order: list[int] = []

    async def taker(number: int) -> None:
        await warm.take(SPEC, 5)
        order.append(number)

    takers = [asyncio.ensure_future(taker(number)) for number in range(6)]
    await settle()
    assert starter.gate is not None
    starter.gate.set()
    await asyncio.gather(*takers)
    assert order == list(range(6))
    await warm.close()


async def test_a_taker_does_not_wait_for_all_that_are_to_stand_ready() -> None:
    starter, gate = Starter(), asyncio.Event()
    starter.gate = gate
    pools_ = make(starter, Clock(), starts_at_once=1)
    warming = asyncio.create_task(pools_.prewarm(SPEC, 8))
    await settle()
    taking = asyncio.create_task(pools_.take(SandboxSpec(image="b"), 5.0))
    await settle()
    gate.set()
    await taking
    assert len(starter.made) <= 3  # the one under way, the taker's, and the one started while it was handed out
    await warming
    await pools_.close()


async def test_prewarm_waits_for_starts_already_under_way() -> None:
    starter = Starter(gate=asyncio.Event())
    warm = make(starter, Clock())
    first = asyncio.ensure_future(warm.prewarm(SPEC, 2))
    await settle()
    second = asyncio.ensure_future(warm.prewarm(SPEC, 2))
    await settle()
    assert not second.done()
    assert starter.gate is not None
    starter.gate.set()
    assert await second == 2
    assert await first == 2
    assert len(starter.made) == 2
    await warm.close()


async def test_a_failed_prewarm_says_why() -> None:
    warm = make(Starter(error=SandboxError("no", code="host_disk_full")), Clock())
    with pytest.raises(SandboxError) as caught:
        await warm.prewarm(SPEC, 2)
    assert caught.value.code == "host_disk_full"
    await warm.close()


async def test_a_failed_start_reaches_the_taker_and_frees_its_place() -> None:
    starter = Starter(error=SandboxError("no"))
    warm = make(starter, Clock(), starts_at_once=1)
    with pytest.raises(SandboxError):
        await warm.take(SPEC, 5)
    starter.error = None
    await warm.take(SPEC, 5)
    await warm.close()


async def test_closing_closes_idle_boxes_and_those_that_come_up_late() -> None:
    starter = Starter()
    warm = make(starter, Clock())
    await warm.prewarm(SPEC, 2)
    starter.gate = asyncio.Event()
    await warm.take(SPEC, 5)
    await settle()
    closing = asyncio.ensure_future(warm.close())
    await settle()
    starter.gate.set()
    await closing
    assert [box.is_closed for box in starter.made].count(False) == 1  # the one in its taker's hands

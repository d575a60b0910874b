"""Warm pools over fake sandboxes and a clock the test turns."""

import asyncio

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes import pools
from envsdk.sandboxes.base import Limits, SandboxSpec
from envsdk.sandboxes.pools import pool_key
from tests.fakes.pools import SPEC, Clock, Starter, make, settle

pytestmark = pytest.mark.usefixtures("no_pause")


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

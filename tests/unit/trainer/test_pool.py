"""The ready pool: oldest first, carry-over, the bound on lag, and never a silent wait."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.episodes import make_group
from trainer.pool import Pool


async def test_the_oldest_complete_groups_come_first_whenever_they_completed() -> None:
    pool = Pool(max_lag=None)
    for order, completion in [(3, 0), (1, 1), (2, 2)]:
        pool.put(make_group(order, completion_order=completion))
    assert [group.draw.order for group in await pool.take(2, version=0)] == [1, 2]
    assert [group.draw.order for group in pool.ready] == [3]


async def test_a_take_waits_until_enough_are_complete() -> None:
    pool = Pool(max_lag=None)
    waiting = asyncio.create_task(pool.take(2, version=0))
    await asyncio.sleep(0)
    pool.put(make_group(0))
    await asyncio.sleep(0)
    assert not waiting.done()
    pool.put(make_group(1))
    assert len(await waiting) == 2


async def test_groups_over_the_bound_are_dropped_and_reported() -> None:
    pool = Pool(max_lag=1)
    heard = []
    pool.on_drop = lambda group, why: heard.append((group.draw.order, why))
    pool.put(make_group(0, version=0))
    pool.put(make_group(1, version=1))
    assert [group.draw.order for group in await pool.take(1, version=2)] == [1]
    assert heard == [(0, "too_old")]


async def test_a_groups_lag_is_its_oldest_tokens() -> None:
    pool = Pool(max_lag=1)
    young = make_group(0, version=5)
    record = young.members[1].record.model_copy(update={"weight_version_oldest": 3})
    pool.put(replace(young, members=(young.members[0], replace(young.members[1], record=record))))
    pool.drop_too_old(5)
    assert pool.ready == ()


async def test_a_failure_of_the_filler_ends_a_take_that_waits() -> None:
    pool = Pool(max_lag=None)
    waiting = asyncio.create_task(pool.take(1, version=0))
    await asyncio.sleep(0)
    pool.fail(RuntimeError("dispatcher died"))
    with pytest.raises(RuntimeError, match="dispatcher died"):
        await waiting


@given(st.permutations(range(6)), st.integers(1, 3))
async def test_every_group_is_taken_once_in_dispatch_order_when_all_are_there(completions, count) -> None:
    pool = Pool(max_lag=None)
    for completion, order in enumerate(completions):
        pool.put(make_group(order, completion_order=completion))
    taken = []
    while len(pool.ready) >= count:
        taken += [group.draw.order for group in await pool.take(count, version=0)]
    assert taken == sorted(completions)[: len(taken)]

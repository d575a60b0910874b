"""What tasks of one image share is made once, and again by the next where the first could not."""

from __future__ import annotations

import asyncio

import pytest

from envsdk.checks.shared import Shared


async def test_a_value_is_made_once_for_all_who_ask_together() -> None:
    shared, made = Shared(), []

    async def make() -> int:
        made.append(1)
        await asyncio.sleep(0)
        return len(made)

    assert await asyncio.gather(*(shared.once("key", make) for _ in range(5))) == [1] * 5
    assert await shared.once("other", make) == 2


async def test_one_that_fails_is_made_by_the_next() -> None:
    shared = Shared()

    async def fail() -> int:
        raise ValueError

    async def make() -> int:
        return 7

    with pytest.raises(ValueError):
        await shared.once("key", fail)
    assert await shared.once("key", make) == 7


async def test_a_maker_that_is_cancelled_keeps_nobody_waiting() -> None:
    shared = Shared()
    started = asyncio.Event()

    async def hang() -> int:
        started.set()
        await asyncio.Event().wait()
        return 0

    async def make() -> int:
        return 7

    first = asyncio.ensure_future(shared.once("key", hang))
    await started.wait()
    second = asyncio.ensure_future(shared.once("key", make))
    first.cancel()
    assert await second == 7
    with pytest.raises(asyncio.CancelledError):
        await first

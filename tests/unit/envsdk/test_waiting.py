"""A long wait says how it stands, a short one nothing; its result, its error and its cancellation are the work's own."""

from __future__ import annotations

import asyncio

import pytest

from envsdk.waiting import told


def test_a_wait_says_how_it_stands_until_its_result() -> None:
    said: list[str] = []

    async def go() -> int:
        enough = asyncio.Event()

        async def work() -> int:
            await enough.wait()
            return 7

        def say(text: str) -> None:
            said.append(text)
            if len(said) == 3:
                enough.set()

        return await told(work(), say, lambda: f"{len(said)} so far", every_s=0.001)

    assert asyncio.run(go()) == 7
    assert said[:3] == ["0 so far", "1 so far", "2 so far"]


def test_a_short_wait_says_nothing() -> None:
    said: list[str] = []

    async def work() -> str:
        return "done"

    assert asyncio.run(told(work(), said.append, lambda: "waiting", every_s=60)) == "done"
    assert said == []


def test_an_error_of_the_work_is_raised_as_it_is() -> None:
    async def work() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        asyncio.run(told(work(), print, lambda: "waiting"))


def test_cancelling_ends_the_work_first() -> None:
    ended: list[str] = []

    async def go() -> None:
        begun = asyncio.Event()

        async def work() -> None:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        waiting = asyncio.create_task(told(work(), print, lambda: "waiting", every_s=60))
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        ended.append("wait")

    asyncio.run(go())
    assert ended == ["work", "wait"]

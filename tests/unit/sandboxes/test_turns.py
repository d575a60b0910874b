"""Turns: never more than allowed, the urgent first, none lost when a waiter goes away."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.sandboxes.turns import Turns


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Scene:
    """Waiters that hold their turn until they are let go; ``order`` names them as they were called."""

    def __init__(self, at_once: int) -> None:
        self.turns = Turns(at_once)
        self.order: list[str] = []
        self.now = self.most = 0
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.gates: dict[str, asyncio.Event] = {}

    async def wait(self, name: str, *, urgent: bool) -> None:
        self.gates[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._hold(name, urgent))
        await settle()

    async def let_go(self, name: str) -> None:
        self.gates[name].set()
        await settle()

    async def _hold(self, name: str, urgent: bool) -> None:
        async with self.turns.turn(urgent=urgent):
            self.order.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await self.gates[name].wait()
            finally:
                self.now -= 1


async def test_an_urgent_one_that_comes_later_is_called_first() -> None:
    scene = Scene(1)
    for name, urgent in [("running", False), ("patient", False), ("urgent", True), ("urgent too", True)]:
        await scene.wait(name, urgent=urgent)
    for name in ("running", "urgent", "urgent too", "patient"):
        await scene.let_go(name)
    assert scene.order == ["running", "urgent", "urgent too", "patient"]


async def test_what_is_kept_for_the_urgent_is_given_to_no_other() -> None:
    turns = Turns(3, kept=1)
    asked = {name: turns.ask(urgent=name == "urgent") for name in ("a", "b", "c", "urgent")}
    assert [name for name, called in asked.items() if called.done()] == ["a", "b", "urgent"]
    turns.leave()  # the urgent one's
    assert not asked["c"].done()
    turns.leave()
    assert asked["c"].done()


async def test_one_that_was_served_otherwise_is_passed_over() -> None:
    turns = Turns(1)
    running, served, waiting = (turns.ask(urgent=True) for _ in range(3))
    served.set_result("something else")
    turns.leave()
    assert running.done()
    assert waiting.done()


async def test_an_error_in_a_turn_frees_it() -> None:
    turns = Turns(1)
    with pytest.raises(ZeroDivisionError):
        async with turns.turn(urgent=True):
            _ = 1 / 0
    async with asyncio.timeout(5), turns.turn(urgent=False):
        pass


@given(
    at_once=st.integers(1, 3),
    waiters=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12),
)
def test_all_who_stay_get_a_turn_and_never_more_at_once_than_allowed(
    at_once: int, waiters: list[tuple[bool, bool]]
) -> None:
    async def play() -> None:
        scene = Scene(at_once)
        for number, (urgent, _) in enumerate(waiters):
            await scene.wait(str(number), urgent=urgent)
        going = {str(number) for number, (_, goes) in enumerate(waiters) if goes}
        for name in going:
            scene.tasks[name].cancel()
        await settle()
        for name in scene.tasks:
            await scene.let_go(name)
        await asyncio.gather(*scene.tasks.values(), return_exceptions=True)
        assert scene.most <= at_once
        assert set(scene.order) >= scene.tasks.keys() - going

    asyncio.run(play())


async def test_one_called_and_cancelled_at_the_same_moment_passes_its_turn_on() -> None:
    turns, called = Turns(1), asyncio.Event()

    async def go() -> None:
        async with turns.turn(urgent=True):
            called.set()

    async with turns.turn(urgent=True):
        goes = asyncio.create_task(go())
        await settle()
    goes.cancel()  # its turn has come, and it has not woken yet
    await settle()
    assert goes.cancelled()
    assert not called.is_set()
    async with asyncio.timeout(5), turns.turn(urgent=True):
        pass

"""The replicas in rotation: who serves, who is out and why, and an end to waiting when nobody is left."""

from __future__ import annotations

import pytest

from envsdk.errors import EngineError
from tests.fakes.engine import FakeEngine
from trainer.engines.rotation import Rotation


def rotation(count: int = 3) -> Rotation:
    return Rotation([FakeEngine(str(number)) for number in range(count)])


async def placed(replicas: Rotation, session: str) -> str:
    async with replicas.turn(session) as engine:
        return engine.name


async def test_a_session_stays_where_it_began() -> None:
    replicas = rotation()
    assert len({await placed(replicas, "a") for _ in range(5)}) == 1


async def test_new_sessions_spread_over_the_replicas() -> None:
    replicas = rotation()
    assert {await placed(replicas, f"session-{number}") for number in range(3)} == {"0", "1", "2"}


async def test_a_removed_replica_gets_no_turn_and_its_sessions_move() -> None:
    replicas = rotation(2)
    before = await placed(replicas, "a")
    replicas.remove(next(engine for engine in replicas.active if engine.name == before), "failed a sync")
    assert await placed(replicas, "a") != before
    assert replicas.removed == {before: "failed a sync"}


async def test_a_dead_replica_is_out_without_being_told() -> None:
    replicas = rotation(2)
    await replicas.replicas[0].close()
    assert [engine.name for engine in replicas.active] == ["1"]
    assert replicas.removed == {"0": "died"}
    assert {await placed(replicas, f"s{number}") for number in range(4)} == {"1"}


async def test_nobody_left_is_an_error_that_says_why_each_is_gone() -> None:
    replicas = rotation(1)
    replicas.remove(replicas.replicas[0], "disagrees on the probe")
    with pytest.raises(EngineError, match="no replica") as caught:
        replicas.require()
    assert "disagrees on the probe" in caught.value.message
    assert "--resume" in caught.value.hint


async def test_a_turn_that_fails_still_ends() -> None:
    replicas = rotation(1)
    with pytest.raises(ZeroDivisionError):
        async with replicas.turn("a"):
            raise ZeroDivisionError
    assert replicas._router.inflight == (0,)


async def test_closing_closes_all_of_them() -> None:
    replicas = rotation(2)
    replicas.remove(replicas.replicas[0], "x")
    await replicas.close()
    assert all(engine.closed for engine in replicas.replicas)

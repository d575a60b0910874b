"""Publishing weights: all or nothing, whatever phase fails on whichever replica."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from envsdk.errors import EngineError
from tests.fakes.engine import FakeEngine, trainer_scores
from trainer.engines.base import Request
from trainer.engines.rotation import Rotation
from trainer.probe import Probe
from trainer.weights import LIMIT_S, WeightPublisher

SEQUENCES = [(5, 6, 7, 8), (9, 5, 9, 5, 9)]


class Run:
    """A learner whose weights are a number, and its replicas."""

    def __init__(self, *engines: FakeEngine, limit_s: float = LIMIT_S) -> None:
        self.engines = engines
        self.learner_version = 0
        self.rotation = Rotation(engines)
        self.written: list[int] = []
        probe = Probe(SEQUENCES, lambda sequences: trainer_scores(self.learner_version, sequences))
        self.publisher = WeightPublisher(self.rotation, probe, self.write, limit_s=limit_s)

    async def write(self, version: int) -> Path:
        self.written.append(version)
        return Path("weights")

    async def step_and_publish(self):
        self.learner_version += 1
        return await self.publisher.publish()


async def started(*engines: FakeEngine) -> Run:
    run = Run(*engines)
    await run.publisher.start()
    return run


async def test_versions_count_published_updates() -> None:
    run = await started(FakeEngine())
    assert [(await run.step_and_publish()).version for _ in range(3)] == [1, 2, 3]
    assert run.publisher.version == run.engines[0].version == 3


@pytest.mark.parametrize(
    ("phase", "replicas"), list(itertools.product(["pause", "load", "resume", "score", "generate"], [1, 3]))
)
async def test_a_failure_in_any_phase_raises_and_keeps_the_version(phase: str, replicas: int) -> None:
    run = await started(*(FakeEngine(str(number)) for number in range(replicas)))
    run.engines[-1].fail.add(phase)
    with pytest.raises(EngineError) as caught:
        await run.step_and_publish()
    assert caught.value.code == "sync_failed"
    assert run.publisher.version == 0


@pytest.mark.parametrize("phase", ["pause", "load", "resume", "score"])
async def test_only_the_replica_that_failed_leaves_and_the_rest_can_be_published_to(phase: str) -> None:
    run = await started(FakeEngine("good"), FakeEngine("bad"))
    run.engines[1].fail.add(phase)
    with pytest.raises(EngineError):
        await run.step_and_publish()
    assert [engine.name for engine in run.rotation.active] == ["good"]
    assert run.engines[1].closed
    publication = await run.publisher.publish()
    assert publication.version == run.publisher.version == 1


@pytest.mark.parametrize("load", [1, 2, 3])
async def test_weights_that_stay_old_without_an_error_are_refused_at_whichever_update_it_happens(load: int) -> None:
    engine = FakeEngine()
    engine.stale_after_load = load
    run = await started(engine)
    for _ in range(load - 1):
        await run.step_and_publish()
    with pytest.raises(EngineError, match="differ"):
        await run.step_and_publish()
    assert run.publisher.version == load - 1
    assert run.rotation.active == []


async def test_the_last_replica_gone_is_an_error_for_every_turn() -> None:
    run = await started(FakeEngine())
    run.engines[0].fail.add("load")
    with pytest.raises(EngineError):
        await run.step_and_publish()
    with pytest.raises(EngineError, match="no replica"):
        async with run.rotation.turn("session"):
            pass
    with pytest.raises(EngineError, match="no replica"):
        await run.publisher.publish()


async def test_a_request_in_flight_goes_on_and_says_which_weights_made_which_token() -> None:
    engine = FakeEngine(reply=lambda request: (7,) * 50 if len(request.prompt_ids) == 1 else (2,))
    run = await started(engine)
    request = asyncio.create_task(engine.generate(Request("long", (5,), 50)))
    await engine.made_tokens(10)
    await run.step_and_publish()
    made = await request
    assert [span.version for span in made.versions] == [0, 1]
    assert made.versions[-1].end == len(made.ids) == 50


async def test_requests_of_a_refused_replica_fail_instead_of_returning_tokens_nobody_vouches_for() -> None:
    engine = FakeEngine(reply=lambda request: (7,) * 500 if len(request.prompt_ids) == 1 else (2,))
    engine.stale_after_load = 1
    run = await started(engine)
    request = asyncio.create_task(engine.generate(Request("long", (5,), 500)))
    await engine.made_tokens(1)
    with pytest.raises(EngineError, match="were not published"):
        await run.step_and_publish()
    with pytest.raises(EngineError, match="closed"):
        await request


def hanging(name: str, call: str) -> FakeEngine:
    """An engine of which one kind of call never returns, once ``hangs`` is set."""
    engine = FakeEngine(name)
    engine.hangs = False
    honest = getattr(engine, call)

    async def never(*args, **kwargs):
        if engine.hangs:
            await asyncio.Event().wait()
        return await honest(*args, **kwargs)

    setattr(engine, call, never)
    return engine


@pytest.mark.parametrize("call", ["pause", "load", "resume", "score", "generate"])
async def test_a_replica_that_hangs_leaves_and_the_rest_can_be_published_to(call: str) -> None:
    run = Run(FakeEngine("good"), hanging("bad", call), limit_s=2)
    await run.publisher.start()
    run.engines[1].hangs = True
    with pytest.raises(EngineError, match="no answer within") as caught:
        await run.step_and_publish()
    assert caught.value.code == "sync_failed"
    assert [engine.name for engine in run.rotation.active] == ["good"]
    assert run.engines[1].closed
    assert (await run.publisher.publish()).version == 1


async def test_a_replica_that_cannot_even_be_closed_holds_nobody_up() -> None:
    run = Run(FakeEngine("good"), hanging("bad", "close"), limit_s=2)
    await run.publisher.start()
    run.engines[1].hangs = True
    run.engines[1].fail.add("load")
    with pytest.raises(EngineError, match=r"closing it: .*no answer"):
        await run.step_and_publish()
    assert [engine.name for engine in run.rotation.active] == ["good"]


async def test_a_replica_that_hangs_before_any_update_ends_the_run() -> None:
    run = Run(hanging("bad", "score"), limit_s=2)
    run.engines[0].hangs = True
    with pytest.raises(EngineError) as caught:
        await run.publisher.start()
    assert caught.value.code == "engine_hangs"


async def test_an_error_that_is_no_engine_failure_is_not_swallowed() -> None:
    class Broken(FakeEngine):
        async def load(self, path: Path, *, version: int) -> None:
            raise ZeroDivisionError

    run = await started(Broken())
    with pytest.raises(ZeroDivisionError):
        await run.step_and_publish()


async def test_the_limit_is_twice_the_baseline_and_never_below_the_floor() -> None:
    run = await started(FakeEngine())
    probe = run.publisher._probe
    assert probe.baseline == 0.0
    assert probe.limit == 0.01
    probe.baseline = 0.05
    assert probe.limit == 0.1


@pytest.mark.parametrize("call", ["pause", "load", "resume"])
async def test_a_replica_that_dies_on_the_way_is_not_passed_over(call: str) -> None:
    class Dying(FakeEngine):
        def _enter(self, name: str) -> None:
            super()._enter(name)
            self.closed = self.closed or name == call

    run = await started(Dying())
    with pytest.raises(EngineError):
        await run.step_and_publish()
    assert run.publisher.version == 0


class Learner:
    """Other weights for the time of a rehearsal, seen by the probe as version -1."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @asynccontextmanager
    async def perturbed(self, *, scale: float, seed: int):
        own, self.run.learner_version = self.run.learner_version, -1
        yield
        self.run.learner_version = own


async def test_a_rehearsal_goes_there_and_back_and_commits_nothing() -> None:
    run = await started(FakeEngine())
    trials = await run.publisher.rehearse(Learner(run).perturbed)
    assert [trial.version for trial in trials] == [-1, 0]
    assert run.publisher.version == run.engines[0].version == 0
    assert (await run.step_and_publish()).version == 1


@pytest.mark.parametrize("load", [1, 2])
async def test_a_rehearsal_finds_weights_that_do_not_arrive_at_the_first_or_the_second_update(load: int) -> None:
    run = await started(FakeEngine())
    run.engines[0].stale_after_load = load
    with pytest.raises(EngineError, match="differ"):
        await run.publisher.rehearse(Learner(run).perturbed)
    assert run.rotation.active == []

"""The simulation decides as the real dispatcher and pool do: on one trace both take the same groups, at the same times."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.fakes.episodes import FAKE_POLICY, make_record, make_task, scored
from tests.fakes.virtual_time import run_in_virtual_time
from trainer.admission import Admission
from trainer.dispatch import Dispatcher
from trainer.group import Member
from trainer.ledger import Ledger
from trainer.pool import Pool
from trainer.simulation.asynchronous import AsyncSetup, simulate_async
from trainer.simulation.trace import TraceGroup


@dataclass(frozen=True)
class Taken:
    """One batch: when it was taken, which groups it holds, and how old each is."""

    at_s: float
    groups: tuple[str, ...]
    lags: tuple[int, ...]


def a_trace(seed: int, count: int, size: int) -> list[TraceGroup]:
    # Real numbers, so that no two events fall on one moment: their order there is the simulation's own choice.
    chance = random.Random(seed)
    return [
        TraceGroup(f"g{n:06d}", tuple(chance.lognormvariate(1, 1) for _ in range(size)), (True,) * size)
        for n in range(count)
    ]


def simulated(groups: list[TraceGroup], setup: AsyncSetup) -> list[Taken]:
    return [Taken(step.take_s, step.groups, step.lag) for step in simulate_async(groups, setup).steps]


async def dispatched(groups: list[TraceGroup], setup: AsyncSetup, folder: Path) -> list[Taken]:
    version = 0
    numbers = itertools.count()

    async def run(member: Member, _grading):
        born = version
        await asyncio.sleep(groups[member.draw.order].durations_s[member.index])
        return make_record(member, scored(float(member.index % 2)), version=born)

    loop = asyncio.get_running_loop()
    pool = Pool(max_lag=setup.max_lag)
    dispatcher = Dispatcher(
        draw=lambda: make_task(next(numbers)),
        run=run,
        policy=FAKE_POLICY,
        pool=pool,
        ledger=Ledger(folder),
        admission=setup.admission,
        version=lambda: version,
        group_size=len(groups[0].durations_s),
        slots=setup.slots or 10_000,
        now=loop.time,
    )
    serving = asyncio.create_task(dispatcher.serve())
    taken = []
    for step in range(setup.steps):
        batch = await pool.take(setup.admission.groups_per_batch, version=version)
        lags = tuple(version - group.oldest_version for group in batch)
        taken.append(Taken(loop.time(), tuple(group.group_id for group in batch), lags))
        if step + 1 < setup.steps:
            await asyncio.sleep(float(setup.train_s))  # type: ignore[arg-type]
            version += 1
            dispatcher.wake()
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    await dispatcher.stop()
    return taken


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    size=st.integers(2, 4),
    batch=st.integers(1, 3),
    staleness=st.integers(0, 3),
    slots=st.none() | st.integers(2, 12),
    train_s=st.floats(0.5, 20),
    max_lag=st.none() | st.integers(1, 3),
)
def test_simulation_and_dispatcher_take_the_same_batches(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    size: int,
    batch: int,
    staleness: int,
    slots: int | None,
    train_s: float,
    max_lag: int | None,
) -> None:
    setup = AsyncSetup(Admission(staleness, batch), steps=6, train_s=train_s, slots=slots, max_lag=max_lag)
    groups = a_trace(seed, 80, size)
    try:
        expected = simulated(groups, setup)
    except ValueError:  # so much was dropped that the trace ended
        assume(False)
    found = run_in_virtual_time(dispatched(groups, setup, tmp_path_factory.mktemp("run")))
    assert [step.groups for step in found] == [step.groups for step in expected]
    assert [step.lags for step in found] == [step.lags for step in expected]
    assert [step.at_s for step in found] == pytest.approx([step.at_s for step in expected], abs=1e-3)

"""Stop a run at any moment, again and again: whatever was dispatched ends once, whatever was trained was trained once.

The loop, dispatcher, pool, ledger, publisher and checkpoints are the real ones; engine, episodes and learner are fakes.
A kill is a cancel after which nothing reaches the disk any more.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from envsdk.files.jsonl import read_rows
from tests.fakes.episodes import ENGINE_500, FakeEpisodes
from tests.fakes.learner import FakeRun, fake_run, luck
from trainer.ledger import Ledger
from trainer.loop import run_steps

STEPS = 6


def unreliable(seed: int) -> FakeEpisodes:
    """A tenth of the episodes fail in the machinery, some raise, and they take their time."""
    chance = random.Random(seed)

    class Unreliable(FakeEpisodes):
        async def run(self, member, grading):
            if chance.random() < 0.05:
                raise ConnectionResetError("the worker died")
            return await super().run(member, grading)

    return Unreliable(
        lambda member: ENGINE_500 if chance.random() < 0.1 else luck(member), steps=lambda member: chance.randrange(6)
    )


def deaf(run: FakeRun) -> None:
    """From now on nothing is written: what a killed process does."""
    run.parts.ledger.end = lambda record: None
    run.parts.ledger.start = lambda episode_id, **row: None
    run.parts.run.metrics = lambda row: None
    run.parts.run.timeline = lambda *_args, **_more: None


async def attempt(folder: Path, seed: int, *, turns: int | None, steps: int = 0, **options) -> FakeRun:
    """Run to the end, or for so many steps and then turns of the event loop, and stop dead."""
    run = await fake_run(folder, episodes=unreliable(seed), steps=STEPS, **options)
    reached = asyncio.Event()
    seen: list[str] = []

    def say(text: str) -> None:
        seen.append(text)
        if len(seen) == steps:
            reached.set()

    run.parts.say = say
    work = asyncio.create_task(run_steps(run.parts))
    if turns is None:
        await work
    else:
        if steps:
            await asyncio.wait([work, asyncio.create_task(reached.wait())], return_when=asyncio.FIRST_COMPLETED)
        for _ in range(turns):
            await asyncio.sleep(0)
        deaf(run)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    run.close()
    return run


@pytest.mark.parametrize("seed", range(8))
async def test_kills_at_random_moments_lose_nothing_and_double_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    options = {"staleness": chance.randrange(3), "checkpoint_every": chance.randrange(1, 4), "max_lag": 4}
    for kill in range(chance.randrange(1, 4)):
        await attempt(tmp_path, 100 * seed + kill, turns=chance.randrange(400), steps=chance.randrange(4), **options)
    run = await attempt(tmp_path, 100 * seed + 99, turns=None, **options)

    rows = read_rows(tmp_path / "metrics.jsonl").rows
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert [row["sync/version"] for row in rows] == list(range(1, STEPS + 1))

    starts = [row["episode_id"] for row in read_rows(tmp_path / "dispatched.jsonl").rows]
    ends = Counter(record.episode_id for record in Ledger(tmp_path).records())
    assert len(set(starts)) == len(starts)
    assert set(ends) == set(starts)
    assert set(ends.values()) == {1}

    trained = [episode for batch in run.learner.trained for episode in batch]
    assert len(run.learner.trained) == STEPS
    assert len(set(trained)) == len(trained)
    assert set(trained) <= set(starts)
    places = [episode.rsplit(".", 1)[0] for episode in trained]
    assert len(set(places)) == len(places)

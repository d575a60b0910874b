"""The loop on fakes: steps, lag, overlap, failing syncs, and resuming after a kill anywhere."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from envsdk.errors import EngineError, FaultyError
from envsdk.files.jsonl import read_rows
from tests.fakes.episodes import ENGINE_500, FakeEpisodes, scored
from tests.fakes.learner import fake_run, luck
from trainer.ledger import Ledger
from trainer.loop import run_steps


def rows_of(folder: Path) -> list[dict]:
    return read_rows(folder / "metrics.jsonl").rows


async def finished(folder: Path, **options):
    run = await fake_run(folder, **options)
    try:
        await run_steps(run.parts)
    finally:
        run.close()
    return run


async def test_every_step_trains_one_batch_and_publishes_one_version(tmp_path: Path) -> None:
    run = await finished(tmp_path, steps=3)
    assert run.learner.updates == run.parts.publisher.version == run.engines[0].version == 3
    assert [row["step"] for row in rows_of(tmp_path)] == [1, 2, 3]
    assert [row["sync/version"] for row in rows_of(tmp_path)] == [1, 2, 3]


async def test_lock_step_has_no_lag(tmp_path: Path) -> None:
    await finished(tmp_path, steps=4, staleness=0)
    assert all(row["lag/oldest"] == 0 for row in rows_of(tmp_path))


async def test_running_ahead_shows_as_lag_per_token(tmp_path: Path) -> None:
    await finished(tmp_path, steps=4, staleness=1)
    lags = Counter()
    for row in rows_of(tmp_path):
        lags.update({int(lag): tokens for lag, tokens in row["lag/tokens"].items()})
    assert lags[1] > 0
    assert max(lags) <= 2


async def test_every_dispatched_episode_ends_once_whatever_the_machinery_does(tmp_path: Path) -> None:
    def facts(member):
        return ENGINE_500 if (member.draw.order + member.index + member.attempt) % 5 == 0 else luck(member)

    await finished(tmp_path, episodes=FakeEpisodes(facts, steps=lambda member: member.index * 3))
    starts = {row["episode_id"] for row in read_rows(tmp_path / "dispatched.jsonl").rows}
    ends = Counter(record.episode_id for record in Ledger(tmp_path).records())
    assert set(ends) == starts
    assert set(ends.values()) == {1}


async def test_no_group_is_trained_twice(tmp_path: Path) -> None:
    run = await finished(tmp_path, steps=5)
    trained = [episode for batch in run.learner.trained for episode in batch]
    assert len(set(trained)) == len(trained)


@pytest.mark.parametrize("phase", ["pause", "load", "resume", "score"])
async def test_a_replica_that_fails_a_sync_is_left_behind_and_the_run_goes_on(tmp_path: Path, phase: str) -> None:
    run = await fake_run(tmp_path, replicas=2, steps=3)
    run.engines[1].fail.add(phase)
    await run_steps(run.parts)
    run.close()
    assert run.parts.publisher.version == run.engines[0].version == 3
    assert run.engines[1].closed
    assert any("going on without the replica" in line for line in run.said)


@pytest.mark.parametrize("phase", ["pause", "load", "resume", "score"])
async def test_the_last_replicas_failed_sync_ends_the_run_at_the_old_version(tmp_path: Path, phase: str) -> None:
    run = await fake_run(tmp_path, steps=3)
    run.engines[0].fail.add(phase)
    with pytest.raises(EngineError, match="were not published"):
        await run_steps(run.parts)
    run.close()
    assert run.parts.publisher.version == 0
    assert Ledger(tmp_path).open == {}


async def test_silent_corruption_at_the_second_update_is_refused(tmp_path: Path) -> None:
    run = await fake_run(tmp_path, steps=3)
    run.engines[0].stale_after_load = 4  # two loads are the rehearsal's
    with pytest.raises(EngineError, match="differ"):
        await run_steps(run.parts)
    run.close()
    assert run.parts.publisher.version == 1


async def test_the_death_of_the_last_engine_ends_the_run_with_its_name_not_with_a_lack_of_signal(
    tmp_path: Path,
) -> None:
    run = await fake_run(tmp_path, steps=50)

    async def dies() -> None:
        while run.learner.updates < 2:  # noqa: ASYNC110 - the learner is a thread
            await asyncio.sleep(0.001)
        await run.engines[0].close()

    killer = asyncio.create_task(dies())
    with pytest.raises(EngineError) as caught:
        await run_steps(run.parts)
    await killer
    run.close()
    assert caught.value.code in {"no_replica", "sync_failed"}
    assert Ledger(tmp_path).open == {}


async def test_a_dispatcher_that_dies_ends_the_run_instead_of_leaving_the_learner_waiting(tmp_path: Path) -> None:
    run = await fake_run(tmp_path)

    def broken():
        raise RuntimeError("the sampler died")

    run.parts.dispatcher._draw = broken
    with pytest.raises(RuntimeError, match="the sampler died"):
        await run_steps(run.parts)
    run.close()


async def test_a_run_without_signal_says_so(tmp_path: Path) -> None:
    run = await fake_run(tmp_path, episodes=FakeEpisodes(lambda member: scored(1.0)))
    with pytest.raises(FaultyError, match="no signal"):
        await run_steps(run.parts)
    run.close()


async def killed_after(folder: Path, step: int, **options) -> None:
    """Run until ``step`` has been printed, then stop dead: nothing is closed, nothing is written any more."""
    run = await fake_run(folder, **options)
    reached = asyncio.Event()

    def say(text: str) -> None:
        if text.startswith(f"step {step:>3}/"):
            reached.set()

    run.parts.say = say
    run.parts.ledger.end = lambda record: None if reached.is_set() else Ledger.end(run.parts.ledger, record)
    task = asyncio.create_task(run_steps(run.parts))
    await reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    run.close()


@pytest.mark.parametrize("kill", [1, 2, 3])
@pytest.mark.parametrize("every", [1, 2])
async def test_in_lock_step_killed_and_resumed_equals_never_killed(tmp_path: Path, kill: int, every: int) -> None:
    options = {"staleness": 0, "steps": 5, "checkpoint_every": every}
    whole = await finished(tmp_path / "whole", **options)
    await killed_after(tmp_path / "killed", kill, **options)
    resumed = await finished(tmp_path / "killed", **options)
    assert resumed.learner.history == whole.learner.history
    assert [row["step"] for row in rows_of(tmp_path / "killed")] == [1, 2, 3, 4, 5]
    assert resumed.parts.publisher.version == whole.parts.publisher.version == 5


@pytest.mark.parametrize("kill", [1, 2, 4])
@pytest.mark.parametrize("every", [1, 2, 3])
async def test_running_ahead_a_resume_loses_nothing_and_doubles_nothing(tmp_path: Path, kill: int, every: int) -> None:
    options = {"staleness": 2, "steps": 6, "checkpoint_every": every}
    await killed_after(tmp_path, kill, **options)
    resumed = await finished(tmp_path, **options)
    assert [row["step"] for row in rows_of(tmp_path)] == [1, 2, 3, 4, 5, 6]
    assert [row["version"] for row in rows_of(tmp_path)] == [0, 1, 2, 3, 4, 5]
    starts = {row["episode_id"] for row in read_rows(tmp_path / "dispatched.jsonl").rows}
    ends = Counter(record.episode_id for record in Ledger(tmp_path).records())
    assert set(ends) == starts
    assert set(ends.values()) == {1}
    trained = [episode for batch in resumed.learner.trained for episode in batch]
    assert len(set(trained)) == len(trained)


async def test_a_resume_keeps_what_was_acknowledged_and_runs_only_what_is_missing(tmp_path: Path) -> None:
    options = {"staleness": 2, "steps": 6, "checkpoint_every": 1}
    await killed_after(tmp_path, 2, **options)
    acknowledged = {record.episode_id for record in Ledger(tmp_path).records()}
    resumed = await finished(tmp_path, **options)
    assert not acknowledged & {member.episode_id for member in resumed.episodes.started}


async def test_versions_go_on_after_a_resume(tmp_path: Path) -> None:
    options = {"steps": 4, "checkpoint_every": 2}
    # A step is printed before it is saved: by the third, the second's checkpoint is whole.
    await killed_after(tmp_path, 3, **options)
    run = await fake_run(tmp_path, **options)
    assert run.parts.first_step == 3
    assert run.parts.publisher.version == run.engines[0].version == run.learner.updates == 2
    run.close()

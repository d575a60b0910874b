"""The dispatcher: admission, refills, rejection, cancels; and every episode ends in the ledger exactly once."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.errors import FaultyError
from tests.fakes.episodes import ENGINE_500, FAKE_POLICY, FakeEpisodes, make_record, make_task, scored
from tests.fakes.virtual_time import run_in_virtual_time
from trainer import places
from trainer.admission import Admission
from trainer.dispatch import Dispatcher
from trainer.endings import abandoned
from trainer.ledger import Ledger
from trainer.pool import Pool
from trainer.recovery import LoopState, describe, describe_draw, recover


class Setup:
    """A dispatcher on fakes; the test plays the learner."""

    def __init__(self, folder: Path, episodes: FakeEpisodes, **options) -> None:
        self.version = first = options.pop("first_version", 0)
        episodes.version = lambda: self.version
        numbers = itertools.count()
        self.pool = Pool(max_lag=options.pop("max_lag", 4))
        self.ledger = Ledger(folder)
        self.dispatcher = Dispatcher(
            draw=lambda: make_task(next(numbers)),
            run=episodes.run,
            policy=FAKE_POLICY,
            pool=self.pool,
            ledger=self.ledger,
            admission=Admission(options.pop("staleness", 1), options.pop("batch", 2)),
            version=lambda: self.version,
            first_version=first,
            group_size=options.pop("group_size", 2),
            slots=options.pop("slots", 8),
            verifications=options.pop("verifications", 16),
            refills=options.pop("refills", 2),
        )

    @asynccontextmanager
    async def serving(self):
        task = asyncio.create_task(self.dispatcher.serve())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.dispatcher.stop()

    async def step(self, count: int = 2) -> list:
        groups = await self.pool.take(count, version=self.version)
        self.version += 1
        self.dispatcher.wake()
        return groups


async def settle() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


async def test_groups_reach_the_pool_complete_and_in_places(tmp_path: Path) -> None:
    run = Setup(tmp_path, FakeEpisodes())
    async with run.serving():
        groups = await run.step()
    assert [group.draw.order for group in groups] == [0, 1]
    assert all([record.index_in_group for record in group.episodes] == [0, 1] for group in groups)


@pytest.mark.parametrize(("staleness", "batch"), [(0, 1), (0, 3), (1, 2), (3, 2)])
async def test_no_more_groups_start_than_the_rule_admits(tmp_path: Path, staleness: int, batch: int) -> None:
    run = Setup(tmp_path, FakeEpisodes(), staleness=staleness, batch=batch, slots=64)
    async with run.serving():
        for version in range(4):
            await settle()
            assert run.dispatcher.counts.dispatched == (staleness + version + 1) * batch
            await run.step(batch)


@pytest.mark.parametrize("staleness", [0, 2])
async def test_a_model_that_was_trained_before_is_run_no_further_ahead(tmp_path: Path, staleness: int) -> None:
    run = Setup(tmp_path, FakeEpisodes(), staleness=staleness, batch=2, slots=64, first_version=40)
    async with run.serving():
        for updates in range(3):
            await settle()
            assert run.dispatcher.counts.dispatched == (staleness + updates + 1) * 2
            await run.step(2)


async def test_no_more_episodes_run_than_there_are_slots(tmp_path: Path) -> None:
    episodes = FakeEpisodes(steps=lambda member: 3)
    run = Setup(tmp_path, episodes, slots=3, group_size=4, staleness=5)
    async with run.serving():
        await run.step()
    assert episodes.most_acting == 3


async def test_an_episode_that_is_verified_leaves_its_slot_to_the_next(tmp_path: Path) -> None:
    episodes = FakeEpisodes(verifying=lambda member: 10_000 if member.index == 0 else 1)
    run = Setup(tmp_path, episodes, slots=1, verifications=2, group_size=3, batch=1, staleness=0)
    async with run.serving():
        await settle()
        assert [member.index for member in episodes.started] == [0, 1, 2]
        assert [member.index for member in episodes.verified] == [0]


async def test_who_waits_for_a_verification_keeps_its_slot_so_that_no_more_are_alive_than_the_two_bounds(
    tmp_path: Path,
) -> None:
    episodes = FakeEpisodes(verifying=lambda member: 30)
    run = Setup(tmp_path, episodes, slots=3, verifications=2, group_size=4, staleness=5)
    async with run.serving():
        await run.step()
        await run.step()
    assert (episodes.most_verified, episodes.most_alive) == (2, 5)


async def test_verifying_changes_nothing_of_how_far_ahead_groups_start(tmp_path: Path) -> None:
    episodes = FakeEpisodes(verifying=lambda member: 10_000)
    run = Setup(tmp_path, episodes, slots=64, verifications=64, batch=2, staleness=1)
    async with run.serving():
        await settle()
        assert run.dispatcher.counts.dispatched == 4


async def test_a_group_that_is_given_up_while_verified_gives_back_what_it_held(tmp_path: Path) -> None:
    def verifying(member) -> int:
        return 10_000 if member.draw.order < 2 else 1

    run = Setup(tmp_path, FakeEpisodes(verifying=verifying), slots=2, verifications=1, batch=1, staleness=1, max_lag=0)
    async with run.serving():
        await settle()
        assert len(await run.dispatcher.cancel_doomed(1)) == 2
        run.version = 1
        run.dispatcher.wake()
        assert len(await run.pool.take(1, version=1)) == 1
    assert run.ledger.open == {}


def test_waiting_for_a_verification_uses_up_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_HANG_FACTOR", 0.0)
    monkeypatch.setattr(places, "_HANG_GRACE_S", 50.0)

    class Slow(FakeEpisodes):
        async def run(self, member, grading):
            async with grading:
                await asyncio.sleep(30.0 if member.draw.order else 80.0)
            return make_record(member, self.facts(member))

    async def group_by_group():
        run = Setup(tmp_path, Slow(), verifications=1, group_size=8, batch=1, staleness=0, refills=0)
        async with run.serving():
            return await run.step(1)

    # Each alone is within its limit, eight one after the other are not; what hangs while it is verified still is cut.
    (group,) = run_in_virtual_time(group_by_group())
    assert (group.draw.order, group.flawed) == (1, False)


async def test_a_new_group_waits_until_no_member_waits_for_a_slot(tmp_path: Path) -> None:
    episodes = FakeEpisodes(steps=lambda member: 5)
    run = Setup(tmp_path, episodes, slots=2, group_size=4, staleness=5)
    async with run.serving():
        await run.step()
    order = [member.draw.order for member in episodes.started]
    assert order == sorted(order)


async def test_exactly_the_missing_member_is_tried_again(tmp_path: Path) -> None:
    def facts(member):
        return ENGINE_500 if member.index == 1 and member.attempt == 0 else scored(float(member.index % 2))

    episodes = FakeEpisodes(facts)
    run = Setup(tmp_path, episodes, group_size=3, batch=1, staleness=0)
    async with run.serving():
        (group,) = await run.step(1)
    first = [(member.index, member.attempt) for member in episodes.started if member.draw.order == 0]
    assert sorted(first) == [(0, 0), (1, 0), (1, 1), (2, 0)]
    assert group.refilled == 1
    assert all(record.outcome.in_gradient for record in group.episodes)


async def test_refills_are_bounded_and_the_survivors_are_trained_flagged(tmp_path: Path) -> None:
    def facts(member):
        return ENGINE_500 if member.index == 2 else scored(float(member.index % 2))

    episodes = FakeEpisodes(facts)
    run = Setup(tmp_path, episodes, group_size=3, batch=1, staleness=0, refills=2)
    async with run.serving():
        (group,) = await run.step(1)
    assert [member.attempt for member in episodes.started if (member.draw.order, member.index) == (0, 2)] == [0, 1, 2]
    assert group.flawed
    assert sum(record.outcome.in_baseline for record in group.episodes) == 2


async def test_a_group_with_one_survivor_is_rejected_and_its_place_filled(tmp_path: Path) -> None:
    def facts(member):
        return ENGINE_500 if member.draw.order == 0 and member.index else scored(float(member.index % 2))

    run = Setup(tmp_path, FakeEpisodes(facts), batch=1, staleness=0, refills=0)
    async with run.serving():
        (group,) = await run.step(1)
        assert run.dispatcher.counts.rejected == {"singleton": 1}
    assert group.draw.order == 1


async def test_zero_variance_groups_are_rejected_counted_and_refilled(tmp_path: Path) -> None:
    def facts(member):
        return scored(1.0 if member.draw.order < 3 else float(member.index))

    run = Setup(tmp_path, FakeEpisodes(facts), batch=2, staleness=0)
    async with run.serving():
        groups = await run.step(2)
        assert run.dispatcher.counts.rejected == {"zero_variance": 3}
        assert run.dispatcher.counts.accepted == 2
    assert [group.draw.order for group in groups] == [3, 4]


async def test_an_unknown_end_completes_its_group_as_excluded(tmp_path: Path) -> None:
    def facts(member):
        return {"phase": "agent", "ended_by": "sandbox_gone"} if member.index == 2 else scored(float(member.index % 2))

    run = Setup(tmp_path, FakeEpisodes(facts), group_size=3, batch=1, staleness=0)
    async with run.serving():
        (group,) = await run.step(1)
    assert group.episodes[2].outcome.outcome_class == "unknown"
    assert group.refilled == 0


async def test_an_exception_in_the_machinery_is_an_end_not_a_hole(tmp_path: Path) -> None:
    class Dying(FakeEpisodes):
        async def run(self, member, grading):
            if member.attempt == 0 and member.index == 0:
                raise ConnectionResetError("worker died")
            return await super().run(member, grading)

    run = Setup(tmp_path, Dying(), batch=1, staleness=0)
    async with run.serving():
        (group,) = await run.step(1)
    assert group.refilled == 1
    assert run.ledger.outcomes["infra_failure"] >= 1


async def test_every_end_says_whose_episode_it_was(tmp_path: Path) -> None:
    class Dying(FakeEpisodes):
        async def run(self, member, grading):
            if member.draw.order == 0 and member.attempt == 0:
                raise ConnectionResetError("worker died")
            return await super().run(member, grading)

    run = Setup(tmp_path, Dying(steps=lambda member: 10_000 if member.draw.order > 2 else 1), batch=1, staleness=8)
    async with run.serving():
        await run.step(1)
    records = list(run.ledger.records())
    assert {"network", "given_up", "finished"} <= {record.outcome.cause for record in records}
    assert all(record.policy == FAKE_POLICY for record in records)


async def test_a_run_without_any_signal_ends_with_an_error_instead_of_going_on_for_ever(tmp_path: Path) -> None:
    run = Setup(tmp_path, FakeEpisodes(lambda member: scored(0.0)), batch=1, staleness=0)
    async with run.serving():
        with pytest.raises(FaultyError, match="no signal"):
            await run.pool.take(1, version=0)


async def test_a_ledger_that_cannot_be_written_reaches_whoever_waits_for_a_batch(tmp_path: Path) -> None:
    run = Setup(tmp_path, FakeEpisodes())

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    run.ledger.start = full
    async with run.serving():
        with pytest.raises(OSError, match="No space"):
            await run.pool.take(2, version=0)


def state_of(run: Setup, version: int) -> LoopState:
    counts = run.dispatcher.counts
    return LoopState(
        step=version,
        version=version,
        next_order=run.dispatcher.order,
        accepted=counts.accepted,
        completions=run.dispatcher.completions,
        ledger_ended=run.ledger.ended,
        rejected=dict(counts.rejected),
        refills=counts.refills,
        exhausted=counts.exhausted,
        pool=tuple(describe(group) for group in run.pool.ready),
        in_flight=tuple(describe_draw(draw) for draw in run.dispatcher.running),
        sampler={},
    )


async def killed_and_restored(folder: Path, episodes: FakeEpisodes, then: FakeEpisodes, **options):
    """The counts at a checkpoint of version 3, and a dispatcher that was restored from it."""
    run = Setup(folder, episodes, **options)
    run.version = 3
    async with run.serving():
        await settle()
        state = state_of(run, 3)
        counts = deepcopy(run.dispatcher.counts)
        run.ledger.end = lambda record: None
    again = Setup(folder, then, **options)
    again.version = 3
    again.ledger.close_abandoned(partial(abandoned, policy=FAKE_POLICY))
    tasks = {make_task(number).digests.task: make_task(number) for number in range(20)}
    again.dispatcher.restore(state, recover(state, again.ledger.records(), tasks))
    return counts, again


def spoiled_or_slow(member):
    return ENGINE_500 if member.index == 1 and member.attempt < 2 else scored(float(member.index % 2))


async def test_a_resume_goes_on_counting_where_the_checkpoint_stood(tmp_path: Path) -> None:
    episodes = FakeEpisodes(spoiled_or_slow, steps=lambda member: 10_000 if member.draw.order == 3 else 1)
    before, again = await killed_and_restored(tmp_path, episodes, FakeEpisodes(), refills=1)
    assert before.refills == before.exhausted > 0
    assert again.dispatcher.counts == before
    await again.dispatcher.stop()


async def test_refills_of_a_group_in_flight_are_those_of_both_attempts(tmp_path: Path) -> None:
    episodes = FakeEpisodes(
        spoiled_or_slow, steps=lambda member: 10_000 if (member.draw.order, member.index) == (0, 0) else 1
    )
    before, again = await killed_and_restored(tmp_path, episodes, FakeEpisodes(), batch=1, staleness=0)
    async with again.serving():
        groups = await again.step(4)
    first = next(group for group in groups if group.draw.order == 0)
    assert (first.refilled, again.dispatcher.counts.refills) == (2, before.refills + 2)


async def test_a_restored_group_is_as_old_as_the_oldest_member_that_it_keeps(tmp_path: Path) -> None:
    episodes = FakeEpisodes(steps=lambda member: 10_000 if member.index else 1)
    _, again = await killed_and_restored(tmp_path, episodes, FakeEpisodes(steps=lambda _: 10_000), max_lag=1)
    again.version = 4
    async with again.serving():
        await settle()
        doomed = await again.dispatcher.cancel_doomed(5)
    assert doomed


async def test_doomed_groups_are_cancelled_and_their_episodes_end_once(tmp_path: Path) -> None:
    episodes = FakeEpisodes(steps=lambda member: 10_000 if member.draw.order == 0 else 1)
    run = Setup(tmp_path, episodes, max_lag=1, staleness=8, batch=1)
    async with run.serving():
        for _ in range(2):
            await settle()
            await run.step(1)
        assert [draw.order for draw in await run.dispatcher.cancel_doomed(run.version)] == [0]
        assert run.dispatcher.counts.rejected["doomed"] == 1
    ends = Counter(record.episode_id for record in run.ledger.records())
    assert set(ends.values()) == {1}
    assert run.ledger.open == {}
    assert run.ledger.causes["given_up"] >= 2


async def test_a_cancel_of_our_own_is_not_dispatched_again(tmp_path: Path) -> None:
    run = Setup(tmp_path, FakeEpisodes(steps=lambda member: 10_000), batch=1, staleness=0)
    async with run.serving():
        await settle()
    assert run.ledger.ended == 2
    assert all(not record.outcome.redispatch for record in run.ledger.records())


async def test_groups_too_old_at_the_take_leave_the_accepted_count(tmp_path: Path) -> None:
    run = Setup(tmp_path, FakeEpisodes(), max_lag=0, staleness=2, batch=1)
    async with run.serving():
        await settle()
        run.version = 1
        await run.step(1)
        assert run.dispatcher.counts.rejected["too_old"] == 3
        counts = run.dispatcher.counts
        assert counts.accepted == counts.dispatched - 3 - len(run.dispatcher.running)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(2, 4), slots=st.integers(1, 6), staleness=st.integers(0, 3))
async def test_whatever_fails_starts_equal_ends_and_no_group_is_taken_twice(
    tmp_path_factory, seed, size, slots, staleness
) -> None:
    chance = random.Random(seed)

    def facts(member):
        draw = chance.random()
        return ENGINE_500 if draw < 0.2 else {} if draw < 0.25 else scored(float(chance.random() < 0.5))

    class Dying(FakeEpisodes):
        async def run(self, member, grading):
            if chance.random() < 0.1:
                raise RuntimeError("silent death")
            return await super().run(member, grading)

    episodes = Dying(facts, steps=lambda member: chance.randrange(5))
    run = Setup(tmp_path_factory.mktemp("run"), episodes, group_size=size, slots=slots, staleness=staleness, max_lag=2)
    taken = []
    async with run.serving():
        for _ in range(4):
            taken += await run.step(2)
            await run.dispatcher.cancel_doomed(run.version)
    assert run.ledger.open == {}
    ends = Counter(record.episode_id for record in run.ledger.records())
    assert set(ends.values()) == {1}
    assert len({group.group_id for group in taken}) == len(taken) == 8
    kept = len(taken) + len(run.pool.ready)
    assert run.dispatcher.counts.dispatched == kept + run.dispatcher.counts.rejected.total()


async def test_an_episode_that_answers_a_cancel_with_a_record_is_not_run_again(tmp_path: Path) -> None:
    class Stubborn(FakeEpisodes):
        async def run(self, member, grading):
            try:
                return await super().run(member, grading)
            except asyncio.CancelledError:
                asyncio.current_task().uncancel()
                return make_record(member, {"phase": "agent", "ended_by": "cancel"})

    episodes = Stubborn(steps=lambda member: 10_000)
    run = Setup(tmp_path, episodes, batch=1, staleness=0)
    async with run.serving():
        await settle()
    assert len(episodes.started) == run.ledger.ended == 2
    assert all(not record.outcome.redispatch for record in run.ledger.records())


async def test_an_episode_that_never_ends_is_ended_and_its_place_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_HANG_FACTOR", 0.0)
    monkeypatch.setattr(places, "_HANG_GRACE_S", 0.02)

    class Hanging(FakeEpisodes):
        async def run(self, member, grading):
            if member.attempt == 0 and member.index == 1:
                await asyncio.Event().wait()
            return await super().run(member, grading)

    run = Setup(tmp_path, Hanging(), batch=1, staleness=0)
    async with run.serving():
        (group,) = await run.step(1)
    assert group.refilled == 1
    assert run.ledger.outcomes["infra_failure"] >= 1

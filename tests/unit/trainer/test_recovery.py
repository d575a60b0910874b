"""Putting a checkpoint and the ledger together: nothing acknowledged is lost in silence, nothing counts twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import StoreError
from tests.fakes.episodes import ENGINE_500, make_group, make_record, make_task, scored
from trainer.endings import given_up
from trainer.group import Draw, Member
from trainer.recovery import GroupState, LoopState, beginning, describe, describe_draw, recover

TASKS = {make_task(number).digests.task: make_task(number) for number in range(10)}


def draw(order: int) -> Draw:
    return Draw(f"g{order:06d}", order, make_task(order), 2, 0, 0.0)


def record(order: int, index: int, *, version: int = 0, attempt: int = 0, facts=None):
    return make_record(Member(draw(order), index, attempt), facts or scored(1.0), version=version)


def state(*, pool=(), in_flight=(), next_order=5, version=2, ledger_ended=0) -> LoopState:
    return LoopState(
        step=2,
        version=version,
        next_order=next_order,
        accepted=4,
        completions=4,
        ledger_ended=ledger_ended,
        rejected={},
        pool=tuple(pool),
        in_flight=tuple(in_flight),
        sampler={},
    )


def test_a_pooled_group_comes_back_as_it_was() -> None:
    group = make_group(3, (1.0, 0.0), version=1, completion_order=7)
    found = recover(state(pool=[describe(group)]), group.episodes, TASKS)
    (back,) = found.pool
    assert back.episodes == group.episodes
    assert (back.group_id, back.dispatch_order, back.completion_order, back.oldest_version) == ("g000003", 3, 7, 1)
    assert found.later == {}


def test_a_group_in_flight_keeps_its_ended_members() -> None:
    found = recover(state(in_flight=[describe_draw(draw(4))]), [record(4, 1)], TASKS)
    ((back, done),) = found.in_flight
    assert back.group_id == "g000004"
    assert list(done) == [1]


def test_what_was_trained_before_the_checkpoint_does_not_come_back() -> None:
    found = recover(state(), [record(0, 0), record(0, 1)], TASKS)
    assert found.pool == found.in_flight == ()
    assert found.later == {}
    assert found.undone == 0


def test_episodes_of_groups_dispatched_after_the_checkpoint_wait_for_their_draw() -> None:
    found = recover(state(), [record(6, 0, version=2), record(6, 1, version=2)], TASKS)
    assert set(found.later["g000006"]) == {0, 1}


def test_episodes_of_weights_that_were_rolled_back_are_left_out_and_counted() -> None:
    found = recover(state(version=2), [record(6, 0, version=3), record(6, 1, version=2)], TASKS)
    assert set(found.later["g000006"]) == {1}
    assert found.undone == 1


def test_failures_of_the_machinery_and_cancels_are_run_again() -> None:
    cancelled = given_up(record(4, 0, facts={"phase": "agent", "ended_by": "cancel"}))
    found = recover(state(in_flight=[describe_draw(draw(4))]), [cancelled, record(4, 1, facts=ENGINE_500)], TASKS)
    assert found.in_flight[0][1] == {}


def test_attempts_that_the_machinery_spoiled_are_counted_for_their_group() -> None:
    spoiled = [record(order, 1, attempt=n, facts=ENGINE_500) for order, n in ((0, 0), (4, 0), (4, 1), (6, 0))]
    found = recover(state(in_flight=[describe_draw(draw(4))]), [record(4, 0), *spoiled], TASKS)
    assert {name: count for name, count in found.refilled.items() if count} == {"g000004": 2, "g000006": 1}


def test_a_checkpoint_from_before_refills_were_kept_is_read() -> None:
    old = state().model_dump(mode="json", exclude={"refills", "exhausted"})
    assert LoopState.model_validate(old).refills == 0


def test_before_the_first_checkpoint_everything_that_ended_is_kept() -> None:
    first = beginning(version=0, sampler={})
    found = recover(first, [record(0, 0), record(1, 1)], TASKS)
    assert set(found.later) == {"g000000", "g000001"}


def test_a_ledger_that_has_lost_episodes_since_the_checkpoint_is_refused() -> None:
    known = [record(0, 0), record(0, 1)]
    recover(state(ledger_ended=2), known, TASKS)
    with pytest.raises(StoreError) as caught:
        recover(state(ledger_ended=3), known, TASKS)
    assert caught.value.code == "ledger_cut"


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(0, 4)), unique_by=lambda e: e[:2], max_size=20)
)
def test_every_ended_episode_is_in_exactly_one_place(episodes) -> None:
    records = [record(order, index, version=version) for order, index, version in episodes]
    pooled = make_group(3, (1.0, 0.0))
    records = [r for r in records if r.group_id != "g000003"] + list(pooled.episodes)
    point = state(pool=[describe(pooled)], in_flight=[describe_draw(draw(2))])
    found = recover(point, records, TASKS)
    places = {record.episode_id: 0 for record in records}
    for group in found.pool:
        for member in group.episodes:
            places[member.episode_id] += 1
    for done in [*found.later.values(), *(done for _, done in found.in_flight)]:
        for member in done.values():
            places[member.record.episode_id] += 1
    trained = sum(int(r.group_id[1:]) < 5 and r.group_id not in {"g000002", "g000003"} for r in records)
    assert max(places.values()) == 1
    assert sum(places.values()) + found.undone + trained == len(records)


def test_a_state_survives_its_own_json() -> None:
    point = state(pool=[describe(make_group(1))], in_flight=[describe_draw(draw(2))])
    assert LoopState.model_validate_json(point.model_dump_json()) == point
    assert isinstance(point.pool[0], GroupState)

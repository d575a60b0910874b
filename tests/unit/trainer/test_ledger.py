"""The ledger: one end for every start, on the disk, whatever kills the run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.errors import StoreError
from tests.fakes.episodes import FAKE_POLICY, make_draw, make_record, scored
from trainer.endings import abandoned
from trainer.group import Member
from trainer.ledger import ENDS, Ledger


def start(ledger: Ledger, member: Member) -> None:
    task = member.draw.task
    ledger.start(
        member.episode_id,
        group_id=member.draw.group_id,
        index=member.index,
        attempt=member.attempt,
        slug=task.slug,
        task_digest=task.digests.task,
        verifier_digest=task.digests.verifier,
    )


def member(order: int = 0, index: int = 0) -> Member:
    return Member(make_draw(order), index, 0)


def finish(ledger: Ledger, one: Member, reward: float = 1.0) -> None:
    start(ledger, one)
    ledger.end(make_record(one, scored(reward)))


def test_a_record_survives_the_writer(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    start(ledger, member())
    record = make_record(member(), scored(1.0))
    ledger.end(record)
    assert list(Ledger(tmp_path).records()) == [record]


def test_a_second_end_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    finish(ledger, member())
    with pytest.raises(StoreError) as caught:
        ledger.end(make_record(member(), scored(0.0)))
    assert caught.value.code == "ended_twice"
    assert Ledger(tmp_path).ended == 1


def test_an_end_without_a_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        Ledger(tmp_path).end(make_record(member(), scored(1.0)))
    assert caught.value.code == "not_started"


def test_a_second_start_is_refused_even_after_a_restart(tmp_path: Path) -> None:
    start(Ledger(tmp_path), member())
    with pytest.raises(StoreError) as caught:
        start(Ledger(tmp_path), member())
    assert caught.value.code == "started_twice"


def test_listeners_hear_of_a_record_after_it_is_on_the_disk(tmp_path: Path) -> None:
    heard = []
    finish(Ledger(tmp_path, on_end=lambda record: heard.append(Ledger(tmp_path).ended)), member())
    assert heard == [1]


def test_counts_by_class_are_those_of_the_whole_run(tmp_path: Path) -> None:
    first = Ledger(tmp_path)
    finish(first, member(index=0), 1.0)
    finish(first, member(index=1), 0.0)
    again = Ledger(tmp_path)
    start(again, member(index=2))
    again.end(make_record(member(index=2), {"phase": "agent", "ended_by": "exception", "exception": {"kind": "x"}}))
    assert again.outcomes == {"model_success": 1, "model_failure": 1, "infra_failure": 1}


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=8, unique=True), st.integers(0, 8))
def test_after_a_kill_anywhere_closing_what_was_open_makes_starts_equal_ends(tmp_path_factory, episodes, ended) -> None:
    folder = tmp_path_factory.mktemp("run")
    ledger = Ledger(folder)
    for pair in episodes:
        start(ledger, member(*pair))
    for pair in episodes[:ended]:
        ledger.end(make_record(member(*pair), scored(1.0)))
    closed = Ledger(folder).close_abandoned(partial(abandoned, policy=FAKE_POLICY))
    assert {record.episode_id for record in closed} == {member(*pair).episode_id for pair in episodes[ended:]}
    assert all(record.outcome.cause == "given_up" and not record.outcome.redispatch for record in closed)
    assert Ledger(folder).open == {}
    assert Ledger(folder).ended == len(episodes)


def test_a_torn_last_row_counts_as_not_ended(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for index in range(2):
        finish(ledger, member(index=index))
    ends = tmp_path / ENDS
    ends.write_bytes(ends.read_bytes()[:-20])
    again = Ledger(tmp_path)
    assert list(again.open) == [member(index=1).episode_id]
    again.close_abandoned(partial(abandoned, policy=FAKE_POLICY))
    assert Ledger(tmp_path).ended == 2


def test_records_come_back_in_the_order_of_their_ends(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for index in (2, 0, 1):
        finish(ledger, member(index=index))
    assert [record.index_in_group for record in Ledger(tmp_path).records()] == [2, 0, 1]


def test_a_ledger_without_an_end_has_no_records(tmp_path: Path) -> None:
    assert list(Ledger(tmp_path).records()) == []

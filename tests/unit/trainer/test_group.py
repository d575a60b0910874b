"""Groups: how old they are, whether they carry a signal, and the records of episodes that ended from outside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envsdk.outcome.reclassify import reclassify_row
from tests.fakes.episodes import ENGINE_500, FAKE_POLICY, make_draw, make_group, make_record, scored
from trainer.endings import abandoned, cancelled, crashed, given_up
from trainer.group import CompleteGroup, EndedMember, Member, signal

CANCELLED = {"phase": "agent", "ended_by": "cancel"}


def group_of(*records, version: int = 5) -> CompleteGroup:
    draw = make_draw(size=len(records), version=version)
    return CompleteGroup(draw, tuple(EndedMember(record, 0.0, 1.0) for record in records), 1.0, 0)


def record(index: int, facts, *, version: int = 5):
    return make_record(Member(make_draw(), index, 0), facts, version=version)


def test_a_group_is_as_old_as_its_oldest_trained_token() -> None:
    assert group_of(record(0, scored(1.0), version=4), record(1, scored(0.0), version=3)).oldest_version == 3


def test_tokens_out_of_the_gradient_make_no_group_old() -> None:
    assert group_of(record(0, scored(1.0)), record(1, ENGINE_500, version=1)).oldest_version == 5


def test_a_group_without_any_trained_token_has_the_age_of_its_dispatch() -> None:
    assert group_of(record(0, ENGINE_500, version=1), version=2).oldest_version == 2


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ([scored(1.0), scored(0.0)], None),
        ([scored(1.0), scored(1.0)], "zero_variance"),
        ([scored(1.0), ENGINE_500], "singleton"),
        ([ENGINE_500, ENGINE_500], "empty"),
        ([scored(1.0), scored(1.0), ENGINE_500], "zero_variance"),
        ([scored(1.0), scored(0.0), {}], None),
    ],
)
def test_only_valid_members_decide_whether_there_is_a_signal(facts, reason) -> None:
    assert signal([record(index, one) for index, one in enumerate(facts)]) == reason


def test_lost_tokens_take_a_member_out_of_the_signal() -> None:
    whole = record(0, scored(1.0))
    lost = whole.model_copy(update={"tokens": whole.tokens.model_copy(update={"complete": False})})
    assert signal([lost, record(1, scored(0.0))]) == "singleton"


def test_a_group_that_lacks_a_member_is_flawed() -> None:
    assert group_of(record(0, scored(1.0)), record(1, ENGINE_500)).flawed
    assert not make_group().flawed


def test_ids_tell_group_place_and_attempt() -> None:
    draw = replace(make_draw(7), group_id="g000007")
    assert Member(draw, 3, 1).episode_id == "g000007-3.1"


def test_a_cancel_of_ours_is_closed_and_never_tried_again() -> None:
    made = cancelled(Member(make_draw(), 1, 2), policy=FAKE_POLICY)
    assert (made.outcome.cause, made.outcome.redispatch, made.attempt) == ("given_up", False, 2)
    assert not made.outcome.in_gradient


def test_a_crash_of_the_machinery_is_tried_again_and_says_what_it_was() -> None:
    made = crashed(Member(make_draw(), 0, 0), KeyError("tool"), policy=FAKE_POLICY)
    assert made.outcome.outcome_class == "infra_failure"
    assert made.outcome.redispatch
    assert made.facts["exception"] == {"kind": "KeyError", "note": "'tool'"}


@pytest.mark.parametrize("facts", [ENGINE_500, scored(0.0), scored(1.0)])
def test_an_episode_that_had_ended_when_its_group_was_given_up_stays_as_it_is(facts: dict) -> None:
    assert given_up(record(0, facts)) == record(0, facts)


@pytest.mark.parametrize("phase", ["acquire", "setup", "agent", "verify"])
def test_an_episode_that_was_cancelled_with_its_group_is_closed_in_any_phase(phase: str) -> None:
    before = record(0, {"phase": phase, "ended_by": "cancel"})
    after = given_up(before)
    assert (before.outcome.cause, before.outcome.redispatch) == ("cancelled", True)
    assert (after.outcome.cause, after.outcome.redispatch) == ("given_up", False)


def test_the_table_applied_again_to_what_we_closed_says_the_same() -> None:
    closed = [cancelled(Member(make_draw(), 1, 2), policy=FAKE_POLICY), given_up(record(0, CANCELLED))]
    assert [reclassify_row(made.model_dump(mode="json"))[1] for made in closed] == [None, None]


def test_what_a_killed_run_left_is_closed_under_its_own_id() -> None:
    row = {
        "episode_id": "g000001-0.0",
        "group_id": "g000001",
        "index": 0,
        "attempt": 0,
        "slug": "s",
        "family": "f",
        "task_digest": "a" * 64,
        "verifier_digest": "b" * 64,
    }
    made = abandoned(row, policy=FAKE_POLICY)
    assert (made.episode_id, made.outcome.cause, made.family) == ("g000001-0.0", "given_up", "f")

"""Routing: turns stay where their prefix is unless the load says otherwise, and every count returns to zero."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.router import Router

events = st.lists(st.tuples(st.sampled_from(["start", "end", "release"]), st.sampled_from("abcdef")), max_size=60)


def replay(router: Router, script: list[tuple[str, str]]) -> None:
    for event, session in script:
        match event:
            case "start":
                router.start_turn(session)
            case "end":
                router.end_turn(session)
            case "release":
                router.release(session)


@given(events, st.integers(1, 4), st.integers(0, 3), st.integers(0, 1000))
def test_counts_never_go_below_zero_and_end_at_zero(script: list, replicas: int, margin: int, seed: int) -> None:
    router = Router(replicas, margin=margin, uniform=random.Random(seed).random)
    for event in script:
        replay(router, [event])
        assert min(router.inflight) >= 0
        assert min(router.active) >= 0
    for session in "abcdef":
        while router.end_turn(session) is not None:
            pass
        router.release(session)
    assert sum(router.inflight) == sum(router.active) == 0


@given(events, st.integers(1, 4), st.integers(0, 3), st.integers(0, 1000))
def test_a_kept_pin_is_never_more_than_the_margin_above_the_least_loaded(
    script: list, replicas: int, margin: int, seed: int
) -> None:
    router = Router(replicas, margin=margin, uniform=random.Random(seed).random)
    pinned: set[str] = set()
    for event, session in script:
        before = router.inflight
        if event == "start":
            placed = router.start_turn(session)
            if session in pinned and not placed.repinned:
                assert before[placed.replica] - min(before) <= margin
            pinned.add(session)
        else:
            replay(router, [(event, session)])
            pinned -= {session} if event == "release" else set()


def test_a_conversation_stays_with_its_replica() -> None:
    router = Router(3)
    first = router.start_turn("s").replica
    for _ in range(5):
        router.end_turn("s")
        placed = router.start_turn("s")
        assert (placed.replica, placed.repinned, placed.tied) == (first, False, (first,))


def test_new_sessions_go_to_the_fewest_active_not_the_fewest_turns() -> None:
    router = Router(2, uniform=lambda: 0.0)
    router.start_turn("a")
    router.start_turn("b")
    router.end_turn("a")
    router.release("b")
    assert router.start_turn("c").replica == 1


def test_a_pin_is_broken_beyond_the_margin_and_moves_with_the_session() -> None:
    router = Router(2, margin=0, uniform=lambda: 0.0)
    for session in ("a", "x", "b"):
        router.start_turn(session)
        router.end_turn(session)
    router.start_turn("a")
    placed = router.start_turn("b")
    assert (placed.replica, placed.repinned) == (1, True)
    assert router.active == (1, 2)


def test_ties_are_broken_by_the_random_source() -> None:
    picks = {Router(4, uniform=lambda u=u: u).start_turn("s").replica for u in (0.0, 0.3, 0.6, 0.99)}
    assert picks == {0, 1, 2, 3}


def test_a_released_session_that_comes_back_is_new_and_its_old_turn_still_ends() -> None:
    router = Router(2, uniform=lambda: 0.0)
    first = router.start_turn("a").replica
    router.release("a")
    router.start_turn("b")
    second = router.start_turn("a").replica
    assert (first, second) == (0, 1)
    assert router.end_turn("a") == first
    assert router.end_turn("a") == second
    assert router.end_turn("a") is None


def test_a_replica_out_of_rotation_gets_nothing_and_loses_its_pins() -> None:
    router = Router(2, uniform=lambda: 0.0)
    router.start_turn("a")
    placed = router.start_turn("a", among=[1])
    assert (placed.replica, placed.repinned) == (1, True)
    with pytest.raises(ValueError, match="no replica"):
        router.start_turn("b", among=[])


def test_ids_are_compared_whole() -> None:
    router = Router(2, uniform=lambda: 0.0)
    router.start_turn("s1")
    router.start_turn("s12")
    router.release("s1")
    assert sum(router.active) == 1


def test_no_replicas_are_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Router(0)

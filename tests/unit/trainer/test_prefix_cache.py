"""The model of prefix caches: whole blocks only, one token always computed, families shared, new weights empty it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainer.prefix_cache import FamilyPrefix, PrefixCaches


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 64))
def test_hits_are_whole_blocks_and_leave_a_token_to_compute(first: int, second: int, block: int) -> None:
    caches = PrefixCaches(1, block=block)
    assert caches.start_turn(0, "s", first) == 0
    found = caches.start_turn(0, "s", second)
    assert found % block == 0
    assert found <= min(first, second - 1)
    assert min(first, second - 1) - found < block


def test_the_last_sampled_token_is_not_cached() -> None:
    caches = PrefixCaches(1, block=1)
    caches.start_turn(0, "s", 10)
    caches.end_turn(0, "s", 15)
    assert caches.start_turn(0, "s", 100) == 14


def test_another_replica_holds_nothing() -> None:
    caches = PrefixCaches(2, block=1)
    caches.start_turn(0, "s", 10)
    assert caches.start_turn(1, "s", 10) == 0


def test_siblings_find_their_familys_prefix() -> None:
    caches = PrefixCaches(1, block=1)
    caches.start_turn(0, "a", 50, FamilyPrefix("f", 30))
    assert caches.start_turn(0, "b", 50, FamilyPrefix("f", 30)) == 30
    assert caches.start_turn(0, "c", 50, FamilyPrefix("other", 30)) == 0


def test_new_weights_empty_every_cache_and_a_turn_in_flight_fills_it_again() -> None:
    caches = PrefixCaches(1, block=1)
    caches.start_turn(0, "s", 10)
    caches.reset()
    assert caches.start_turn(0, "t", 10) == 0
    caches.end_turn(0, "s", 12)
    assert caches.start_turn(0, "s", 20) == 11

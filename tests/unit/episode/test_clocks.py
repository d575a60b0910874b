"""The clocks of an episode."""

from __future__ import annotations

import time

import pytest

from envsdk.episode.clocks import EpisodeClock
from envsdk.spec.model import Budget


def test_a_phase_that_raises_is_timed_all_the_same() -> None:
    clock = EpisodeClock(Budget())
    with pytest.raises(ValueError), clock.phase("build"):
        raise ValueError
    assert clock.times().build_s is not None
    assert clock.times().acquire_s is None


def test_what_nobody_else_held_is_the_harnesss() -> None:
    clock = EpisodeClock(Budget())
    with clock.acting():
        time.sleep(0.05)
        clock.hold("model", 0.01)
    held = clock.facts()["held_s"]
    assert held["model"] == 0.01
    assert held["harness"] >= 0.03


def test_time_before_acting_is_not_taken_from_the_episode() -> None:
    clock = EpisodeClock(Budget(episode_s=10, total_s=100))
    time.sleep(0.05)
    assert clock.left_s() == 10


def test_the_total_bounds_the_episode() -> None:
    clock = EpisodeClock(Budget(episode_s=10, total_s=0.01))
    time.sleep(0.02)
    assert clock.left_s() == 0


def test_a_queue_that_claims_more_than_the_wait_is_not_believed() -> None:
    clock = EpisodeClock(Budget())
    clock.generated(wall_s=1.0, queue_s=5.0, prefill_s=0.1, decode_s=0.2)
    with clock.acting():
        pass
    assert clock.facts()["held_s"]["inference"] == 1.0
    assert clock.facts()["held_s"]["model"] == 0.0
    assert clock.times().prefill_s == 0.1


def test_first_only_keeps_the_first_stamp_and_others_are_replaced() -> None:
    heard: list[str] = []
    clock = EpisodeClock(Budget(), on_stamp=lambda name, _: heard.append(name))
    for _ in range(2):
        clock.stamp("first_token", first_only=True)
        clock.stamp("last_token")
    assert heard == ["first_token", "last_token", "last_token"]
    assert clock.stamps["first_token"] < clock.stamps["last_token"]

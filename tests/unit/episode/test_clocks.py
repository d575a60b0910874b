"""The clocks of an episode, on a clock of the test's own: nothing here waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.episode import clocks
from envsdk.episode.clocks import EpisodeClock
from envsdk.spec.model import Budget


class FakeTime:
    """Stands for the module `time`: it passes where the test says so; ``skew`` is what the wall clock runs ahead."""

    def __init__(self) -> None:
        self.passed = 1000.0
        self.skew = 0.0

    def monotonic(self) -> float:
        return self.passed

    def time(self) -> float:
        return 1_700_000_000.0 + self.passed + self.skew

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(clocks, "time", fake)
    return fake


durations = st.floats(0, 100, allow_nan=False)
holds = st.lists(st.tuples(st.sampled_from(["model", "tool", "inference", None]), durations), max_size=12)


def test_a_phase_that_raises_is_timed_all_the_same(now: FakeTime) -> None:
    clock = EpisodeClock(Budget())

    def breaks() -> None:
        with clock.phase("build"):
            now.sleep(2.0)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        breaks()
    assert clock.times().build_s == 2.0
    assert clock.times().acquire_s is None


def test_a_phase_that_happens_twice_adds_up(now: FakeTime) -> None:
    clock = EpisodeClock(Budget())
    for _ in range(2):
        with clock.phase("setup"):
            now.sleep(1.5)
    assert clock.times().setup_s == 3.0


def test_time_before_acting_is_not_taken_from_the_episode(now: FakeTime) -> None:
    clock = EpisodeClock(Budget(episode_s=10, total_s=100))
    now.sleep(50)
    assert clock.left_s() == 10
    with clock.acting():
        now.sleep(4)
        assert clock.left_s() == 6


def test_the_total_bounds_the_episode(now: FakeTime) -> None:
    clock = EpisodeClock(Budget(episode_s=10, total_s=12))
    now.sleep(5)
    assert clock.left_s() == 7
    now.sleep(100)
    assert clock.left_s() == 0


@given(holds)
def test_who_held_the_clock_adds_up_to_the_time_acted(parts: list[tuple[str | None, float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        now = FakeTime()
        patch.setattr(clocks, "time", now)
        clock = EpisodeClock(Budget())
        with clock.acting():
            for holder, seconds in parts:
                if holder is None:  # nobody's: the harness's own work
                    now.sleep(seconds)
                else:
                    with clock.held_by(holder):  # type: ignore[arg-type]
                        now.sleep(seconds)
        facts = clock.facts()
    acted = sum(seconds for _, seconds in parts)
    assert facts["monotonic_s"] == pytest.approx(acted, abs=1e-2)
    assert sum(facts["held_s"].values()) == pytest.approx(acted, abs=1e-2)
    for name in ("model", "tool", "inference"):
        assert facts["held_s"][name] == pytest.approx(sum(s for holder, s in parts if holder == name), abs=1e-2)


@given(st.floats(0, 1000), st.floats(0, 1000), st.floats(0, 1000), st.floats(0, 1000))
def test_what_is_left_is_never_below_nothing_nor_above_either_budget(
    before: float, acted: float, episode_s: float, total_s: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        now = FakeTime()
        patch.setattr(clocks, "time", now)
        clock = EpisodeClock(Budget(episode_s=episode_s + 1, total_s=total_s + 1))
        now.sleep(before)
        with clock.acting():
            now.sleep(acted)
            left = clock.left_s()
    assert 0 <= left <= min(episode_s, total_s) + 1


@given(st.floats(0, 100), st.floats(0, 100))
def test_a_queue_that_claims_more_than_the_wait_is_not_believed(wall_s: float, queue_s: float) -> None:
    clock = EpisodeClock(Budget())
    with clock.acting():
        clock.generated(wall_s=wall_s, queue_s=queue_s, prefill_s=0.1, decode_s=0.2)
    held = clock.facts()["held_s"]
    assert held["inference"] == pytest.approx(min(wall_s, queue_s), abs=1e-3)
    assert held["inference"] + held["model"] == pytest.approx(wall_s, abs=2e-3)
    assert (clock.times().prefill_s, clock.times().decode_s) == (0.1, 0.2)


def test_a_wall_clock_that_runs_away_is_seen_beside_the_monotonic_one(now: FakeTime) -> None:
    clock = EpisodeClock(Budget())
    with clock.acting():
        now.sleep(3)
        now.skew = 3600.0
    facts = clock.facts()
    assert (facts["monotonic_s"], facts["wall_s"]) == (3.0, 3603.0)


def test_first_only_keeps_the_first_stamp_and_others_are_replaced(now: FakeTime) -> None:
    heard: list[tuple[str, float]] = []
    clock = EpisodeClock(Budget(), on_stamp=lambda name, at: heard.append((name, at)))
    for _ in range(2):
        now.sleep(1)
        clock.stamp("first_token", first_only=True)
        clock.stamp("last_token")
    assert clock.stamps == {"first_token": 1.0, "last_token": 2.0}
    assert heard == [("first_token", 1.0), ("last_token", 1.0), ("last_token", 2.0)]


def test_a_stamp_may_be_set_at_a_moment_that_is_past(now: FakeTime) -> None:
    clock = EpisodeClock(Budget())
    now.sleep(9)
    clock.stamp("first_token", at=2.5)
    assert clock.stamps == {"first_token": 2.5}


def test_an_episode_that_never_acted_has_no_times_of_acting(now: FakeTime) -> None:
    clock = EpisodeClock(Budget())
    now.sleep(1)
    times = clock.times()
    assert (times.prefill_s, times.decode_s, times.tool_s) == (None, None, None)
    assert times.total_s == 1.0


@pytest.mark.parametrize(
    ("parts", "holder"),
    [
        ([("model", 3.0), ("tool", 2.0)], "tool"),
        ([("tool", 2.0), ("inference", 9.0)], "inference"),
        ([("tool", 2.0), (None, 1.0)], "harness"),
        ([(None, 1.0), ("model", 0.5)], "model"),
        ([(None, 1.0)], "harness"),
    ],
)
def test_who_held_the_clock_when_the_acting_ended_is_told(
    now: FakeTime, parts: list[tuple[str | None, float]], holder: str
) -> None:
    clock = EpisodeClock(Budget())
    with clock.acting():
        for name, seconds in parts:
            if name is None:
                now.sleep(seconds)
            else:
                with clock.held_by(name):  # type: ignore[arg-type]
                    now.sleep(seconds)
    assert clock.facts()["at_end"] == holder

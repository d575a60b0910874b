"""Time to trainable batch: what it is, and that its attribution neither loses nor invents a second."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.episode.record import PhaseTimes
from tests.fakes.episodes import make_draw, make_group, make_record, scored
from trainer.clock import PHASES, BatchTiming, batch_timing, percentile
from trainer.group import CompleteGroup, EndedMember, Member

STAMPS = {"acquired": 2.0, "first_token": 3.0, "last_token": 9.0, "verify_start": 9.5, "verified": 11.0}
TIMES = PhaseTimes(decode_s=2.0, tool_s=1.0)


def stamped(order: int = 0, *, at: float = 0.0, waited: float = 1.0, stamps=STAMPS, times=TIMES) -> CompleteGroup:
    draw = make_draw(order, at=at)
    start = at + waited
    end = start + stamps["verified"]
    members = tuple(
        EndedMember(make_record(Member(draw, index, 0), scored(float(index)), stamps=stamps, times=times), start, end)
        for index in range(2)
    )
    return CompleteGroup(draw, members, end, order)


def read(groups, *, previous=0.0, asked=0.0, assembly=0.0) -> BatchTiming:
    taken = max(asked, *(group.completed_at for group in groups))
    return batch_timing(groups, previous_handover=previous, asked_at=asked, taken_at=taken, packed_at=taken + assembly)


def test_the_first_batch_counts_from_zero() -> None:
    assert read([stamped()]).t2tb_s == pytest.approx(12.0)


def test_a_batch_that_was_ready_before_the_last_hand_over_costs_its_assembly_only() -> None:
    timing = read([make_group(completed_at=5.0)], previous=20.0, asked=30.0, assembly=0.25)
    assert timing.t2tb_s == timing.attribution["assembly"] == pytest.approx(0.25)
    assert timing.pool_wait_s == pytest.approx(25.0)
    assert timing.learner_wait_s == 0.0


def test_every_phase_of_the_critical_episode_gets_its_seconds() -> None:
    attribution = read([stamped()]).attribution
    expected = {"queue": 1.0, "acquire": 2.0, "prefill": 1.0, "decode": 4.0, "tool": 2.5, "verify": 1.5}
    assert {phase: attribution[phase] for phase in expected} == pytest.approx(expected)


def test_only_the_part_of_an_episode_inside_the_window_counts() -> None:
    attribution = read([stamped()], previous=10.0, asked=10.0).attribution
    assert attribution["queue"] == attribution["acquire"] == attribution["prefill"] == 0.0
    assert sum(attribution.values()) == pytest.approx(2.0)


def test_waiting_for_one_group_after_all_others_is_the_stragglers() -> None:
    attribution = read([make_group(1, completed_at=4.0), stamped(0)]).attribution
    assert attribution["straggler"] == pytest.approx(8.0)
    assert sum(attribution.values()) == pytest.approx(12.0)


def test_what_the_straggler_was_busy_with_stands_beside_its_wait() -> None:
    timing = read([make_group(1, completed_at=4.0), stamped(0)])
    assert timing.straggler == pytest.approx(
        {"queue": 0, "acquire": 0, "prefill": 0, "decode": 4.0, "tool": 2.5, "verify": 1.5, "other": 0}
    )
    assert {name: timing.attribution[name] for name in ("queue", "acquire", "prefill", "decode")} == pytest.approx(
        {"queue": 1.0, "acquire": 2.0, "prefill": 1.0, "decode": 0.0}
    )


def test_a_straggler_that_had_not_begun_was_queueing() -> None:
    timing = read([make_group(1, completed_at=4.0), stamped(0, at=7.0)])
    assert timing.straggler["queue"] == pytest.approx(4.0)


def test_a_batch_of_one_group_waits_for_no_straggler() -> None:
    assert not any(read([stamped()]).straggler.values())


def test_time_before_the_dispatch_is_queueing() -> None:
    assert read([stamped(at=7.0)], previous=2.0, asked=2.0).attribution["queue"] == pytest.approx(6.0)


def test_unstamped_time_is_called_other_and_not_hidden() -> None:
    assert read([make_group(completed_at=3.0)]).attribution["other"] == pytest.approx(3.0)


def test_the_learners_wait_and_the_batchs_age_stand_beside_it() -> None:
    timing = read([stamped(at=1.0)], previous=3.0, asked=6.0, assembly=1.0)
    assert timing.learner_wait_s == pytest.approx(7.0)
    assert timing.age_s == pytest.approx(13.0)


@settings(deadline=None)
@given(
    groups=st.lists(
        st.tuples(st.floats(0, 50), st.floats(0, 5), st.lists(st.floats(0, 9), min_size=5, max_size=5)),
        min_size=1,
        max_size=5,
    ),
    previous=st.floats(0, 80),
    assembly=st.floats(0, 3),
    decode=st.floats(0, 5),
    tool=st.floats(0, 5),
)
def test_the_phases_always_add_up_to_the_total(groups, previous, assembly, decode, tool) -> None:
    built = []
    for order, (at, waited, steps) in enumerate(groups):
        stamps = dict(zip(STAMPS, [sum(steps[: i + 1]) for i in range(5)], strict=True))
        built.append(
            stamped(order, at=at, waited=waited, stamps=stamps, times=PhaseTimes(decode_s=decode, tool_s=tool))
        )
    timing = read(built, previous=previous, asked=previous, assembly=assembly)
    assert set(timing.attribution) == set(PHASES)
    assert all(seconds >= -1e-9 for seconds in timing.attribution.values())
    assert math.isclose(sum(timing.attribution.values()), timing.t2tb_s, abs_tol=1e-6)
    assert all(seconds >= 0 for seconds in timing.straggler.values())
    assert math.isclose(sum(timing.straggler.values()), timing.attribution["straggler"], abs_tol=1e-9)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 2.5), (1.0, 4.0), (0.95, 3.85)])
def test_percentiles_lie_between_neighbours(share: float, expected: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], share) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 1), st.floats(0, 1))
def test_percentiles_stay_within_the_values_and_in_order(values: list[float], one: float, other: float) -> None:
    low, high = (percentile(values, share) for share in sorted((one, other)))
    slack = 1e-9 * max(values)  # of interpolating
    assert min(values) - slack <= low <= high + slack
    assert high <= max(values) + slack
    assert percentile(values, 1.0) == max(values)

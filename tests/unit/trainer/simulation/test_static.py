"""One batch under fixed weights: list scheduling's bounds hold, and every launched group is accounted for."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.simulation.static import StaticMode, simulate_static
from trainer.simulation.trace import TraceGroup, ticks

durations = st.lists(st.integers(0, 50).map(lambda tenth: tenth / 10), min_size=1, max_size=4)


@st.composite
def traces(draw) -> list[TraceGroup]:
    rows = draw(st.lists(durations, min_size=1, max_size=8))
    return [
        TraceGroup(f"g{n}", tuple(row), tuple(bool(n % 2) for _ in row), sum(row) / len(row))
        for n, row in enumerate(rows)
    ]


modes = st.sampled_from(get_args(StaticMode))


@given(traces(), modes, st.integers(1, 12), st.data())
def test_no_schedule_beats_the_work_or_the_longest_member(groups: list, mode: str, slots: int, data) -> None:
    count = data.draw(st.integers(1, len(groups)))
    result = simulate_static(groups, groups_per_batch=count, slots=slots, mode=mode)
    kept = [group for group in groups if group.id in result.kept]
    work = sum(sum(group.durations_s) for group in kept)
    assert result.time_to_batch_s >= work / slots - 1e-9
    assert result.time_to_batch_s >= max(max(group.durations_s) for group in kept) - 1e-9


@given(traces(), modes, st.integers(1, 12), st.data())
def test_every_launched_group_is_kept_carried_or_not_started(groups: list, mode: str, slots: int, data) -> None:
    count = data.draw(st.integers(1, len(groups)))
    result = simulate_static(groups, groups_per_batch=count, slots=slots, mode=mode)
    launched = len(groups) if mode == "first_complete" else count
    assert len(result.kept) == count
    names = (*result.kept, *result.carried, *result.not_started)
    assert len(names) == len(set(names)) == launched


@given(traces())
def test_without_a_limit_on_slots_the_order_does_not_matter(groups: list) -> None:
    times = {
        simulate_static(groups, groups_per_batch=len(groups), slots=None, mode=mode).time_to_batch_s
        for mode in get_args(StaticMode)
    }
    assert times == {max(max(group.durations_s) for group in groups)}


@given(traces())
def test_one_slot_takes_the_sum_of_all(groups: list) -> None:
    result = simulate_static(groups, groups_per_batch=len(groups), slots=1, mode="group_order")
    assert ticks(result.time_to_batch_s) == sum(ticks(d) for group in groups for d in group.durations_s)


def test_waiting_for_all_is_held_up_by_the_straggler_that_first_complete_leaves_behind() -> None:
    groups = [TraceGroup("slow", (9.0,), (False,)), TraceGroup("a", (1.0,), (True,)), TraceGroup("b", (1.0,), (True,))]
    waits = simulate_static(groups, groups_per_batch=2, slots=None, mode="group_order")
    takes = simulate_static(groups, groups_per_batch=2, slots=None, mode="first_complete")
    assert (waits.time_to_batch_s, takes.time_to_batch_s) == (9.0, 1.0)
    assert takes.carried == ("slow",)
    # What first-complete does to the batch is visible: it keeps the short and easy ones.
    assert (takes.kept_share.pass_rate, takes.launched_share.pass_rate) == (1.0, pytest.approx(2 / 3))


def test_longest_first_shortens_the_tail() -> None:
    groups = [TraceGroup(str(d), (float(d),), (True,), float(d)) for d in (1, 1, 1, 1, 4)]
    order, longest = (
        simulate_static(groups, groups_per_batch=5, slots=2, mode=mode).time_to_batch_s
        for mode in ("group_order", "longest_first")
    )
    assert (order, longest) == (6.0, 4.0)


def test_too_few_groups_are_an_error() -> None:
    with pytest.raises(ValueError, match="cannot fill"):
        simulate_static([], groups_per_batch=1, slots=None, mode="group_order")

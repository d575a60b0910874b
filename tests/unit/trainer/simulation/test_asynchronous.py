"""Asynchronous training on a trace: admission is never exceeded, nothing is taken twice, lag is what versions say."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from trainer.admission import Admission
from trainer.simulation.asynchronous import AsyncSetup, simulate_async
from trainer.simulation.trace import TraceGroup


@st.composite
def runs(draw) -> tuple[list[TraceGroup], AsyncSetup]:
    per_batch, steps, size = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rows = [[draw(st.integers(1, 60)) / 10 for _ in range(size)] for _ in range(per_batch * steps + 20)]
    groups = [TraceGroup(f"g{n}", tuple(row), (True,) * size) for n, row in enumerate(rows)]
    setup = AsyncSetup(
        admission=Admission(draw(st.integers(0, 3)), per_batch),
        steps=steps,
        train_s=draw(st.integers(1, 80)) / 10,
        slots=draw(st.one_of(st.none(), st.integers(1, 8))),
        policy=draw(st.sampled_from(["oldest_complete_first", "first_complete"])),
    )
    return groups, setup


@given(runs())
def test_admission_is_never_exceeded(run: tuple) -> None:
    groups, setup = run
    for dispatch in simulate_async(groups, setup).dispatch:
        assert dispatch.running + dispatch.accepted + 1 <= dispatch.limit
        assert dispatch.limit == setup.admission.limit(dispatch.version)


@given(runs())
def test_every_batch_has_its_size_and_no_group_is_taken_twice(run: tuple) -> None:
    groups, setup = run
    result = simulate_async(groups, setup)
    taken = [group for step in result.steps for group in step.groups]
    assert len(result.steps) == setup.steps
    assert all(len(step.groups) == setup.admission.groups_per_batch for step in result.steps)
    assert len(taken) == len(set(taken))
    assert set(taken) <= {completion.group for completion in result.ready}


@given(runs())
def test_each_step_trains_the_version_of_its_number(run: tuple) -> None:
    groups, setup = run
    oldest = {c.group: c.oldest_version for c in simulate_async(groups, setup).ready}
    for step in simulate_async(groups, setup).steps:
        assert step.version == step.step
        assert step.lag == tuple(step.version - oldest[group] for group in step.groups)
        assert min(step.lag) >= 0


@given(runs())
def test_times_add_up(run: tuple) -> None:
    groups, setup = run
    steps = simulate_async(groups, setup).steps
    for before, after in itertools.pairwise(steps):
        assert after.request_s == pytest.approx(before.take_s + setup.train_s)
        assert after.since_previous_take_s == pytest.approx(after.take_s - before.take_s)
        assert after.wait_s >= 0
    for step in steps:
        assert 0 <= step.t2tb_s <= step.since_previous_take_s + 1e-9
        assert min(step.queued_s) >= 0


@given(runs())
def test_without_staleness_every_batch_is_on_policy_where_it_is_dispatched_whole(run: tuple) -> None:
    groups, setup = run
    strict = AsyncSetup(admission=Admission(0, setup.admission.groups_per_batch), steps=setup.steps, train_s=1.0)
    assert all(max(step.lag) == 0 for step in simulate_async(groups, strict).steps)


@given(runs(), st.integers(0, 2))
def test_a_hard_bound_is_never_broken_and_what_it_drops_is_reported(run: tuple, max_lag: int) -> None:
    groups, setup = run
    bounded = AsyncSetup(
        admission=setup.admission,
        steps=setup.steps,
        train_s=setup.train_s,
        slots=setup.slots,
        policy=setup.policy,
        max_lag=max_lag,
    )
    try:
        result = simulate_async(groups, bounded)
    except ValueError:
        reject()  # so much was dropped that the trace ended
    assert all(max(step.lag) <= max_lag for step in result.steps)
    assert all(drop.lag > max_lag for drop in result.dropped)
    taken = {group for step in result.steps for group in step.groups}
    assert not taken & {drop.group for drop in result.dropped}


def test_oldest_first_takes_the_straggler_that_finish_order_leaves_behind() -> None:
    slow = TraceGroup("slow", (3.0,), (True,))
    groups = [slow, *(TraceGroup(f"q{n}", (1.0,), (True,)) for n in range(30))]
    taken = {}
    for policy in ("oldest_complete_first", "first_complete"):
        setup = AsyncSetup(Admission(3, 1), steps=4, train_s=2.5, slots=4, policy=policy)
        steps = simulate_async(groups, setup).steps
        taken[policy] = next((step.step for step in steps if "slow" in step.groups), None)
    assert taken["oldest_complete_first"] == 1
    assert taken["first_complete"] == 3


def test_times_that_are_equal_in_decimal_are_equal_whatever_sums_led_to_them() -> None:
    groups = [TraceGroup("a", (0.1,), (True,)), TraceGroup("b", (0.2,), (True,)), TraceGroup("c", (0.3,), (True,))]
    setup = AsyncSetup(Admission(5, 3), steps=1, train_s=1.0, slots=2)
    result = simulate_async(groups, setup)
    assert [d.time_s for d in result.dispatch[:3]] == [0.0, 0.0, 0.1]
    assert result.steps[0].take_s == 0.4


def test_a_trace_that_is_too_short_is_an_error() -> None:
    with pytest.raises(ValueError, match="too few groups"):
        simulate_async([TraceGroup("a", (1.0,), (True,))], AsyncSetup(Admission(0, 1), steps=2, train_s=1.0))

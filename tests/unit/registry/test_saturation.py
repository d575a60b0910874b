"""Posteriors, evidence and states: the rules hold on any stream, however it is cut into batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from registry.saturation import states
from registry.saturation.cusum import ALARM, cusum_path
from registry.saturation.eprocess import THRESHOLD, e_bh, e_path
from registry.saturation.posterior import (
    DEFAULT_PRIOR,
    Beta,
    Counts,
    decayed,
    group_value,
    interval,
    learnability,
    regions,
    updated,
)
from registry.saturation.screening import AT_MOST, STEP, screen
from registry.saturation.states import Track, provisional_path, retired, settled, step

POSITIVE = st.floats(0.01, 200.0)
BETAS = st.builds(Beta, POSITIVE, POSITIVE)
STREAMS = st.lists(st.one_of(st.booleans(), st.none()), max_size=120)


@given(st.builds(Beta, st.floats(0.5, 200.0), st.floats(0.5, 200.0)))
def test_an_interval_holds_its_level_of_the_mass(beta):
    low, high = interval(beta)
    held = special.betainc(beta.alpha, beta.beta, high) - special.betainc(beta.alpha, beta.beta, low)
    assert held == pytest.approx(0.9, abs=1e-6)


@given(BETAS)
def test_the_three_classes_are_everything(beta):
    found = regions(beta)
    assert found.low + found.mid + found.high == pytest.approx(1.0, abs=1e-9)
    assert min(found.low, found.mid, found.high) >= 0.0


@given(BETAS)
def test_learnability_is_the_expectation_it_says(beta):
    mean, var = stats.beta.stats(beta.alpha, beta.beta)
    assert learnability(beta) == pytest.approx(float(mean - mean**2 - var), rel=1e-9)


@given(BETAS, st.integers(2, 32))
def test_a_groups_value_is_a_probability_that_grows_with_the_group(beta, group):
    assert -1e-12 <= group_value(beta, group) <= group_value(beta, group + 1) + 1e-12 <= 1.0 + 1e-12


@pytest.mark.parametrize(("passes", "trials"), [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(passes, trials):
    with pytest.raises(ValueError, match="not a count"):
        updated(DEFAULT_PRIOR, passes=passes, trials=trials)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20))
def test_decayed_counts_never_exceed_the_raw_ones(events):
    counts, version, raw = Counts(), 0, 0
    for more, passes, fails in events:
        version += more
        raw += passes + fails
        counts = decayed(counts, version=version, passes=passes, fails=fails)
        assert 0.0 <= counts.k <= counts.n <= raw + 1e-9


def test_two_events_of_one_version_are_as_good_as_one():
    twice = decayed(decayed(Counts(), version=3, passes=1, fails=2), version=3, passes=2, fails=0)
    assert twice == decayed(Counts(), version=3, passes=3, fails=2)


@given(STREAMS)
def test_ungraded_outcomes_change_no_evidence(stream):
    graded = [outcome for outcome in stream if outcome is not None]
    assert e_path(stream) == e_path(graded)
    assert cusum_path(stream) == cusum_path(graded)


def test_thirty_two_straight_passes_confirm():
    assert e_path([True] * 40)[1] == 32


@pytest.mark.parametrize("rate", [0.9, 0.8])
def test_a_process_under_the_null_rarely_confirms_however_often_one_looks(rate):
    rng = np.random.default_rng(7)
    streams = rng.random((10_000, 256)) < rate
    steps = np.where(streams, math.log(0.99 / 0.9), math.log(0.01 / 0.1))
    reached = (np.cumsum(steps, axis=1) >= math.log(THRESHOLD)).any(axis=1)
    assert reached.mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(streams))


@given(st.lists(st.floats(0, 1e6), max_size=40))
def test_e_bh_retires_the_largest_and_only_with_enough_evidence(values):
    gone = e_bh(values)
    assert gone == sorted(set(gone))
    if gone:
        least = min(values[index] for index in gone)
        assert all(values[index] <= least for index in range(len(values)) if index not in gone)
        assert least >= len(values) / (len(gone) * 0.05) * (1 - 1e-9)


@given(st.lists(st.booleans(), max_size=100))
def test_the_cusum_is_never_negative_and_stops_at_its_alarm(stream):
    path, alarm = cusum_path(stream)
    assert all(value >= 0.0 for value in path)
    assert (alarm is None) == (not path or path[-1] < ALARM)


@given(STREAMS)
def test_screening_looks_at_fours_and_uses_at_most_32(stream):
    found = screen(DEFAULT_PRIOR, stream)
    assert [look.n for look in found.looks] == list(range(STEP, STEP * len(found.looks) + 1, STEP))
    assert found.n <= AT_MOST
    assert found.used <= len(stream)


def fold(track, stream, version=0):
    reasons = []
    for outcome in stream:
        track, reason = step(track, outcome, weight_version=version)
        reasons.append(reason)
    return track, reasons


@given(STREAMS, st.integers(0, 120))
@settings(deadline=None)
def test_folding_in_two_batches_is_folding_in_one(stream, cut):
    whole, _ = fold(Track(), stream)
    first, _ = fold(Track(), stream[:cut])
    assert fold(first, stream[cut:])[0] == whole


@given(STREAMS)
@settings(deadline=None)
def test_a_phase_changes_exactly_where_a_reason_is_given(stream):
    track = Track()
    for outcome in stream:
        after, reason = step(track, outcome)
        assert (after.phase != track.phase) == bool(reason)
        track = after
        assert track.phase in states.STATUSES


@given(STREAMS)
@settings(deadline=None)
def test_counts_are_those_of_the_stream_until_something_is_reopened(stream):
    track, reasons = fold(Track(), stream)
    graded = [outcome for outcome in stream if outcome is not None]
    if "cusum" not in reasons:
        assert (track.n, track.k, track.ungraded) == (len(graded), sum(graded), len(stream) - len(graded))


def test_evidence_begins_anew_at_each_entry_into_saturating():
    track, _ = fold(Track(), [True] * 12)
    assert (track.phase, track.e_value) == ("saturating", 1.0)
    track, _ = fold(track, [True] * 5)
    assert track.e_value == pytest.approx(1.1**5)
    track, _ = fold(track, [False] * 6)
    assert track.phase != "saturating"
    track, _ = fold(track, [True] * 200)
    assert track.phase == "saturated"


def test_weight_updates_decay_the_counts_but_not_the_evidence():
    track, _ = fold(Track(), [True] * 12)
    for version in range(1, 33):
        track, _ = step(track, True, weight_version=version)
    assert track.phase == "saturated"
    assert track.counts.n < 12


def test_saturating_holds_until_the_mean_falls_below_eight_tenths():
    track, _ = fold(Track(), [True] * 12)
    while track.phase == "saturating":
        before = track
        track, _ = step(track, False)
    assert before.posterior.mean >= 0.8 > track.posterior.mean


def test_a_learnable_task_does_not_flicker_at_the_border():
    track, _ = fold(Track(), [True, False, True, False])
    phases = set()
    for _ in range(20):
        for outcome in (True, True, False):
            track, _ = step(track, outcome)
            phases.add(track.phase)
    assert phases == {"learnable"}


@pytest.mark.parametrize("phase", ["saturated", "retired"])
def test_what_is_out_of_use_comes_back_with_fresh_counts(phase):
    track, _ = fold(Track(), [True] * 50)
    track = retired(track) if phase == "retired" else track
    track, reasons = fold(track, [False] * 3)
    assert reasons == ["", "", "cusum"]
    assert (track.phase, track.n, track.counts.n, track.e_value) == ("calibrating", 0, 0.0, 1.0)


def test_a_single_failed_retest_changes_nothing():
    track, _ = fold(Track(), [True] * 50)
    track, reasons = fold(track, [False] + [True] * 10)
    assert (track.phase, track.cusum, set(reasons)) == ("saturated", 0.0, {""})


def test_a_new_prior_can_settle_a_task_and_needs_an_outcome_to_do_so():
    sure = Beta(50.0, 50.0)
    assert settled(Track(prior=sure))[0].phase == "checked"
    track, _ = step(Track(), True)
    assert settled(Track(prior=sure, phase=track.phase, counts=track.counts, k=1, n=1)) == (
        Track(prior=sure, phase="learnable", counts=track.counts, k=1, n=1),
        "posterior",
    )


def test_the_provisional_flag_alone_turns_off_only_below_eight_tenths():
    path = provisional_path(DEFAULT_PRIOR, [True] * 12 + [False] * 3)
    assert [one.saturated for one in path[10:]] == [False, True, True, True, False]

"""The states of a task as a machine: which moves there are, what each needs, and what no stream can do."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.saturation import states
from registry.saturation.cusum import ALARM
from registry.saturation.eprocess import THRESHOLD, e_step
from registry.saturation.posterior import DEFAULT_PRIOR, Beta, Counts, decayed, regions
from registry.saturation.screening import CERTAIN
from registry.saturation.states import Track, advance, retired, settled, step

outcomes = st.lists(st.sampled_from([True, False, None]), max_size=80)
versions = st.lists(st.integers(0, 6), max_size=80)
streams = st.lists(st.tuples(st.sampled_from([True, True, True, False, None]), st.integers(0, 4)), max_size=90)
priors = st.tuples(st.floats(0.05, 5.0), st.floats(0.05, 5.0)).map(lambda pair: Beta(*pair))

MOVES = {
    "checked": {"calibrating", "learnable", "too_hard", "saturating"},
    "calibrating": {"learnable", "too_hard", "saturating"},
    "learnable": {"calibrating", "too_hard", "saturating"},
    "too_hard": {"calibrating", "learnable", "saturating"},
    "saturating": {"calibrating", "learnable", "too_hard", "saturated"},
    "saturated": {"calibrating"},
    "retired": {"calibrating"},
}
REASONS = {"posterior", "first_outcome", "uncertain_again", "e_value", "cusum"}


def walk(stream, track=None):
    """Every (track before, outcome, track after, reason) of a stream."""
    track = Track() if track is None else track
    for passed, version in stream:
        after, reason = step(track, passed, weight_version=version)
        yield track, passed, after, reason
        track = after


def last(stream, track=None):
    track = Track() if track is None else track
    for *_, after, _ in walk(stream, track):
        track = after
    return track


def straight(passed, times):
    return [(passed, 0)] * times


@given(streams, priors)
@settings(deadline=None)
def test_only_the_moves_there_are_happen_each_with_a_reason(stream, prior):
    for before, _, after, reason in walk(stream, Track(prior=prior)):
        if before.phase == after.phase:
            assert reason == ""
        else:
            assert after.phase in MOVES[before.phase]
            assert reason in REASONS


@given(streams, priors)
@settings(deadline=None)
def test_an_ungraded_outcome_counts_itself_and_changes_nothing_else(stream, prior):
    for before, passed, after, _ in walk(stream, Track(prior=prior)):
        if passed is None:
            assert after.ungraded == before.ungraded + 1
            assert (after.phase, after.counts, after.k, after.n) == (before.phase, before.counts, before.k, before.n)
            assert (after.e_value, after.cusum, after.prior) == (before.e_value, before.cusum, before.prior)


@given(streams)
@settings(deadline=None)
def test_raw_counts_are_whole_and_passes_no_more_than_trials(stream):
    for before, passed, after, reason in walk(stream):
        assert 0 <= after.k <= after.n
        assert 0.0 <= after.counts.k <= after.counts.n + 1e-9
        if passed is not None and reason != "cusum":
            assert (after.n, after.k) == (before.n + 1, before.k + passed)


@given(streams)
@settings(deadline=None)
def test_decayed_counts_never_exceed_raw_ones_and_versions_never_go_back(stream):
    for before, _, after, reason in walk(stream):
        assert after.counts.n <= after.n + 1e-9
        if reason != "cusum" and before.counts.version is not None:
            assert after.counts.version >= before.counts.version


@given(streams)
@settings(deadline=None)
def test_an_entered_class_holds_its_share_of_the_posterior(stream):
    needed = {"learnable": "mid", "too_hard": "low", "saturating": "high"}
    for _, _, after, reason in walk(stream):
        if reason == "posterior":
            assert getattr(regions(after.posterior), needed[after.phase]) >= CERTAIN


@given(streams)
@settings(deadline=None)
def test_a_class_is_never_kept_with_less_than_half(stream):
    for _, passed, after, _ in walk(stream):
        found = regions(after.posterior)
        if passed is not None and after.phase == "learnable":
            assert found.mid >= 0.5
        if passed is not None and after.phase == "too_hard":
            assert found.low >= 0.5


@given(streams)
@settings(deadline=None)
def test_saturated_is_entered_from_saturating_alone_and_by_the_e_process(stream):
    for before, _, after, _ in walk(stream):
        if after.phase == "saturated" and before.phase != "saturated":
            assert before.phase == "saturating"
            assert after.e_value >= THRESHOLD


@given(streams)
@settings(deadline=None)
def test_the_e_process_begins_anew_at_each_entry(stream):
    for before, _, after, _ in walk(stream):
        if after.phase == "saturating" and before.phase != "saturating":
            assert after.e_value == 1.0


@given(st.lists(st.booleans(), max_size=60))
@settings(deadline=None)
def test_the_e_process_runs_on_raw_outcomes_whatever_the_versions(passes):
    track = Track(phase="saturating", counts=Counts(40.0, 40.0, 0), k=40, n=40)
    expected = 1.0
    for number, passed in enumerate(passes):
        track, _ = step(track, passed, weight_version=number)
        if track.phase != "saturating":
            return
        expected = e_step(expected, passed)
        assert track.e_value == expected


@given(streams, st.integers(0, 90))
@settings(deadline=None)
def test_folding_in_two_parts_is_folding_at_once(stream, cut):
    assert last(stream[cut:], last(stream[:cut])) == last(stream)


def test_straight_passes_are_saturating_and_32_more_saturated():
    path = [after.phase for _, _, after, _ in walk(straight(True, 60))]
    entered = path.index("saturating")
    assert path.index("saturated") - entered == 32
    assert set(path[path.index("saturated") :]) == {"saturated"}


@pytest.mark.parametrize("failures", [1, 2])
def test_one_or_two_failures_leave_what_is_saturated(failures):
    track = last(straight(True, 60) + straight(False, failures))
    assert track.phase == "saturated"
    assert 0 < track.cusum < ALARM


def test_three_failures_reopen_it_with_counts_that_begin_anew():
    track = last(straight(True, 60) + straight(False, 3))
    assert (track.phase, track.k, track.n, track.e_value, track.cusum) == ("calibrating", 0, 0, 1.0, 0.0)
    assert track.posterior == track.prior


def test_passes_between_failures_take_the_alarm_back():
    track = last(straight(True, 60) + [(False, 0), *straight(True, 12)] * 6)
    assert track.phase == "saturated"


def test_retired_is_left_by_the_same_alarm():
    track = retired(last(straight(True, 60)))
    assert track.phase == "retired"
    assert last(straight(True, 50), track).phase == "retired"
    assert last(straight(False, 3), track).phase == "calibrating"


@pytest.mark.parametrize("phase", ["saturated", "retired"])
def test_a_new_prior_does_not_reopen_what_only_retests_may(phase):
    track = Track(prior=Beta(0.1, 50.0), phase=phase, counts=Counts(40.0, 40.0, 0), k=40, n=40)
    assert settled(track) == (track, "")


def test_a_new_prior_alone_decides_nothing_before_an_outcome():
    assert settled(Track(prior=Beta(99.0, 1.0))) == (Track(prior=Beta(99.0, 1.0)), "")


def test_a_new_prior_may_move_what_was_measured():
    track = last([(True, 0), (False, 0)] * 2)
    assert track.phase == "learnable"
    moved, reason = settled(Track(prior=Beta(0.2, 60.0), phase="learnable", counts=track.counts, k=2, n=4))
    assert (moved.phase, reason) == ("too_hard", "posterior")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40), st.floats(0.1, 1.0))
@settings(deadline=None)
def test_decay_is_a_weighted_sum(events, keep):
    """Where versions only rise: each outcome weighs ``keep`` to the number of updates since."""
    events = sorted(events, key=lambda event: event[1])
    counts = Counts()
    for passed, version in events:
        counts = decayed(counts, version=version, passes=float(passed), fails=float(not passed), keep=keep)
    newest = events[-1][1]
    weights = [keep ** (newest - version) for _, version in events]
    assert counts.n == pytest.approx(sum(weights))
    assert counts.k == pytest.approx(sum(weight for weight, (passed, _) in zip(weights, events, strict=True) if passed))


def test_late_outcomes_of_older_versions_weigh_in_full():
    counts = decayed(Counts(2.0, 4.0, 7), version=3, passes=1.0, fails=0.0)
    assert counts == Counts(3.0, 5.0, 7)


def test_every_phase_is_a_status_and_draft_is_the_one_more():
    assert set(states.STATUSES) == set(MOVES) | {"draft"}


@pytest.mark.parametrize("keep", [1.0, 0.9])
def test_a_track_of_a_million_versions_is_still_a_number(keep):
    counts = decayed(Counts(5.0, 9.0, 0), version=10**6, passes=1.0, fails=0.0, keep=keep)
    assert math.isfinite(counts.k)
    assert math.isfinite(counts.n)
    posterior = Track(counts=counts).posterior
    assert posterior.alpha >= DEFAULT_PRIOR.alpha


@given(streams, priors)
@settings(deadline=None)
def test_a_stream_at_once_is_its_outcomes_one_by_one(stream, prior):
    track = Track(prior=prior)
    after, moves = advance(track, stream)
    walked = list(walk(stream, track))
    assert after == (walked[-1][2] if walked else track)
    moved = [(before, now, reason) for before, _, now, reason in walked if reason]
    assert [(move.before, move.after, move.reason) for move in moves] == moved


@given(streams)
@settings(deadline=None)
def test_the_counts_of_a_track_fade_as_decayed_says(stream):
    """`decayed` is what the contract's cases are run on."""
    for (before, passed, after, reason), (_, version) in zip(walk(stream), stream, strict=True):
        if passed is not None and reason != "cusum":
            counts = decayed(before.counts, version=version, passes=float(passed), fails=float(not passed))
            assert after.counts == counts

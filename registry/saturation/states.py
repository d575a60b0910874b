"""The states of a task for one policy lineage, as a pure function of its outcomes in their order.

    checked -> calibrating -> learnable | too_hard | saturating -> saturated -> retired

``calibrating`` is also the word for not enough data. A class is entered when it holds 95 % of the posterior.
``saturating`` is left only when the posterior mean falls below 0.8; ``learnable`` and ``too_hard`` when another
class is certain or they hold less than half of the posterior themselves: peeking at the border then does not make a
task flicker. ``saturating`` turns ``saturated`` when the e-process, begun anew at each entry and fed by raw
outcomes, reaches 20. ``saturated`` and ``retired`` are left only by the CUSUM over re-tests; the counts then begin
anew, since what was seen before the change no longer speaks for the task. ``draft`` is no state of this machine: it
covers all of them while no complete, passing check report exists.

Every value an outcome can move is in `Track`, so folding outcomes one by one, in batches, or all again gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from registry.saturation.cusum import ALARM, cusum_step
from registry.saturation.eprocess import THRESHOLD, e_step
from registry.saturation.posterior import DEFAULT_PRIOR, Beta, Counts, faded, regions, updated
from registry.saturation.screening import CERTAIN, certain_class

Phase = Literal["checked", "calibrating", "learnable", "too_hard", "saturating", "saturated", "retired"]
STATUSES = ("draft", "checked", "calibrating", "learnable", "too_hard", "saturating", "saturated", "retired")
NO_COUNTS = Counts()
PROVISIONAL_OFF = 0.8
"""``saturating`` ends when the posterior mean is below this."""


@dataclass(frozen=True, slots=True)
class Track:
    """One item's standing for one lineage, as the fold sees it.

    Attributes:
        counts: decayed passes and trials. k, n: raw ones behind this estimate; ungraded: outcomes without a grade.
        e_value: evidence for saturation since ``saturating`` was entered. cusum: evidence against, since
        ``saturated``.
    """

    prior: Beta = DEFAULT_PRIOR
    phase: Phase = "checked"
    counts: Counts = NO_COUNTS
    k: int = 0
    n: int = 0
    ungraded: int = 0
    e_value: float = 1.0
    cusum: float = 0.0

    @property
    def posterior(self) -> Beta:
        """Prior plus decayed counts."""
        return updated(self.prior, passes=self.counts.k, trials=self.counts.n)


@dataclass(frozen=True, slots=True)
class Move:
    """A change of phase. ``place``: which outcome of the stream brought it; ``before``, ``after``: around that one."""

    place: int
    before: Track
    after: Track
    reason: str


def advance(track: Track, outcomes: Iterable[tuple[bool | None, int]]) -> tuple[Track, list[Move]]:
    """Fold a stream of (passed, weight version) in, in its order; the track after it, and the changes of phase.

    `None` is ungraded and enters nothing but coverage. Bulk ingest spends its time here, hence plain numbers.
    """
    prior, phase = track.prior, track.phase
    values = _values(track)
    moves: list[Move] = []
    for place, (passed, weight_version) in enumerate(outcomes):
        counted_k, counted_n, version, k, n, ungraded, e_value, cusum = values
        if passed is None:
            values = (counted_k, counted_n, version, k, n, ungraded + 1, e_value, cusum)
            continue
        following, reason = phase, ""
        if version is None or weight_version > version:
            fade = 1.0 if version is None else faded(weight_version - version)
            counted_k, counted_n, version = counted_k * fade, counted_n * fade, weight_version
        counted_k, counted_n = counted_k + passed, counted_n + 1.0
        k, n = k + passed, n + 1
        if phase in _RETESTED:
            cusum = cusum_step(cusum, passed)
            # E goes on: it is what a refresh's e-BH weighs, and stays a martingale whenever it is looked at.
            e_value = e_step(e_value, passed)
            if cusum >= ALARM:
                following, reason = "calibrating", "cusum"
                counted_k, counted_n, version, k, n, ungraded, e_value, cusum = (
                    0.0,
                    0.0,
                    weight_version,
                    0,
                    0,
                    0,
                    1.0,
                    0.0,
                )
        else:
            if phase == "saturating":
                e_value = e_step(e_value, passed)
            if phase == "saturating" and e_value >= THRESHOLD:
                following, reason, cusum = "saturated", "e_value", 0.0
            else:
                following, reason = _following(
                    phase, prior.alpha + counted_k, prior.beta + max(counted_n - counted_k, 0.0)
                )
                if following == "saturating" != phase:
                    e_value = 1.0
        before, values = values, (counted_k, counted_n, version, k, n, ungraded, e_value, cusum)
        if following != phase:
            moves.append(Move(place, _track(prior, phase, before), _track(prior, following, values), reason))
            phase = following
    return _track(prior, phase, values), moves


def step(track: Track, passed: bool | None, *, weight_version: int = 0) -> tuple[Track, str]:
    """`advance` by one outcome: the new track, and the reason of a change of phase, empty where the phase stays."""
    after, moves = advance(track, [(passed, weight_version)])
    return after, moves[0].reason if moves else ""


_RETESTED = frozenset({"saturated", "retired"})
_Values = tuple[float, float, int | None, int, int, int, float, float]


def _values(track: Track) -> _Values:
    counts = track.counts
    return counts.k, counts.n, counts.version, track.k, track.n, track.ungraded, track.e_value, track.cusum


def _track(prior: Beta, phase: Phase, values: _Values) -> Track:
    counted_k, counted_n, version, k, n, ungraded, e_value, cusum = values
    return Track(prior, phase, Counts(counted_k, counted_n, version), k, n, ungraded, e_value, cusum)


def settled(track: Track) -> tuple[Track, str]:
    """The track in the phase that its posterior calls for, and the reason of a change: after a new prior."""
    if track.phase in _RETESTED or track.n == 0:
        return track, ""
    posterior = track.posterior
    phase, reason = _following(track.phase, posterior.alpha, posterior.beta)
    if phase == track.phase:
        return track, ""
    if phase == "saturating":
        return replace(track, phase=phase, e_value=1.0), reason
    return replace(track, phase=phase), reason


@lru_cache(maxsize=1 << 14)
def _following(phase: Phase, alpha: float, beta: float) -> tuple[Phase, str]:
    """The phase that a posterior calls for after ``phase``, and the reason of the change.

    Kept for posteriors met lately: in a bulk of outcomes thousands of tasks meet the same few.
    """
    if phase == "saturating" and alpha / (alpha + beta) >= PROVISIONAL_OFF:
        return phase, ""
    found = regions(Beta(alpha, beta))
    certain = certain_class(found)
    if certain == "saturated":
        following: Phase = "saturating"
    elif certain != "uncertain":
        following = certain
    elif (phase == "learnable" and found.mid >= 0.5) or (phase == "too_hard" and found.low >= 0.5):
        following = phase
    else:
        following = "calibrating"
    if following == phase:
        return phase, ""
    if following != "calibrating":
        return following, "posterior"
    return following, "first_outcome" if phase == "checked" else "uncertain_again"


def retired(track: Track) -> Track:
    """The track after a published refresh retired it; re-tests go on and can re-open it."""
    return replace(track, phase="retired")


@dataclass(frozen=True, slots=True)
class ProvisionalStep:
    """The provisional flag after ``n`` graded outcomes."""

    n: int
    mean: float
    p_high: float
    saturated: bool


def provisional_path(prior: Beta, outcomes: Iterable[bool | None]) -> list[ProvisionalStep]:
    """The provisional flag alone along a stream: on at P(p >= 0.9) >= 0.95, off only below a mean of 0.8."""
    n = k = 0
    on = False
    path = []
    for outcome in outcomes:
        if outcome is None:
            continue
        n, k = n + 1, k + bool(outcome)
        posterior = updated(prior, passes=k, trials=n)
        high = regions(posterior).high
        on = posterior.mean >= PROVISIONAL_OFF if on else high >= CERTAIN
        path.append(ProvisionalStep(n, posterior.mean, high, on))
    return path

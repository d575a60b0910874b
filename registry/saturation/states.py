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
from registry.saturation.posterior import DEFAULT_PRIOR, Beta, Counts, decayed, regions, updated
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


@lru_cache(maxsize=1 << 14)
def step(track: Track, passed: bool | None, *, weight_version: int = 0) -> tuple[Track, str]:
    """Fold one outcome in; `None` is ungraded and enters nothing but coverage.

    Returns the new track and the reason of a change of phase, empty where the phase stays. Steps taken lately are kept:
    in a bulk of outcomes thousands of tasks begin with the same few.
    """
    if passed is None:
        return replace(track, ungraded=track.ungraded + 1), ""
    track = _counted(track, passed, weight_version)
    if track.phase in ("saturated", "retired"):
        return _retested(track, passed, weight_version)
    if track.phase == "saturating":
        track = replace(track, e_value=e_step(track.e_value, passed))
        if track.e_value >= THRESHOLD:
            return replace(track, phase="saturated", cusum=0.0), "e_value"
    return settled(track)


def _counted(track: Track, passed: bool, weight_version: int) -> Track:
    # Written out: `replace` takes four times as long, and bulk ingest comes by here once an outcome.
    return Track(
        track.prior,
        track.phase,
        decayed(track.counts, version=weight_version, passes=float(passed), fails=float(not passed)),
        track.k + passed,
        track.n + 1,
        track.ungraded,
        track.e_value,
        track.cusum,
    )


def settled(track: Track) -> tuple[Track, str]:
    """The track in the phase that its posterior calls for, and the reason of a change (also after a new prior)."""
    if track.phase in ("saturated", "retired") or track.n == 0:
        return track, ""
    posterior = track.posterior
    if track.phase == "saturating" and posterior.mean >= PROVISIONAL_OFF:
        return track, ""
    found = regions(posterior)
    certain = certain_class(found)
    if certain == "saturated":
        phase: Phase = "saturating"
    elif certain != "uncertain":
        phase = certain
    elif (track.phase == "learnable" and found.mid >= 0.5) or (track.phase == "too_hard" and found.low >= 0.5):
        phase = track.phase
    else:
        phase = "calibrating"
    if phase == track.phase:
        return track, ""
    reason = (
        "posterior" if phase != "calibrating" else ("first_outcome" if track.phase == "checked" else "uncertain_again")
    )
    if phase == "saturating":
        return replace(track, phase=phase, e_value=1.0), reason
    return replace(track, phase=phase), reason


def retired(track: Track) -> Track:
    """The track after a published refresh retired it; re-tests go on and can re-open it."""
    return replace(track, phase="retired")


def _retested(track: Track, passed: bool, weight_version: int) -> tuple[Track, str]:
    s = cusum_step(track.cusum, passed)
    if s < ALARM:
        # E goes on: it is what a refresh's e-BH weighs, and stays a martingale whenever it is looked at.
        return replace(track, cusum=s, e_value=e_step(track.e_value, passed)), ""
    fresh = Track(prior=track.prior, phase="calibrating", counts=Counts(0.0, 0.0, weight_version))
    return fresh, "cusum"


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

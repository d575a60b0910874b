"""Why a task changed its state, in the reader's words, with the numbers that made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from registry.web.formats import evidence as written_evidence
from registry.web.formats import percent, words

_PLAIN = {
    "first_outcome": "its first graded episode",
    "uncertain_again": "no class is certain any more",
    "refresh": "retired by a published refresh",
    "oracle_failed": "its oracle failed",
    "verifier_errors": "its verifier failed three times in a row",
    "repeat_failed": "repeated runs of its verifier disagreed",
    "repeat_passed": "repeated runs of its verifier agree again",
    "report_checked": "a complete report of checks passed",
    "report_failed": "a report of checks failed",
    "report_partial": "the newest report of checks is incomplete",
}


def because(reason: str, evidence: Mapping[str, Any]) -> str:
    """``reason`` as a sentence's end; a reason of a newer version as its code says."""
    of_prior = reason.startswith("prior_")
    bare = reason.removeprefix("prior_")
    said = _measured(bare, evidence) if evidence else ""
    said = said or _PLAIN.get(bare, words(bare))
    return f"by a new prior: {said}" if of_prior else said


def _measured(reason: str, evidence: Mapping[str, Any]) -> str:
    of = f"{percent(evidence['mean'])} after {evidence['n']} graded episodes"
    match reason:
        case "posterior":
            return f"pass rate {of}"
        case "uncertain_again":
            return f"{_PLAIN[reason]}: {of}"
        case "e_value":
            return f"evidence E = {written_evidence(evidence['e_value'])}"
        case "cusum":
            return f"it fails again: CUSUM {evidence['cusum']:.1f} of 5"
    return ""

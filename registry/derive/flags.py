"""The flags of an item alone, whatever the policy: ``verified``, ``broken``, ``flaky``.

``broken``: the oracle fails, or three verifier-caused errors in a row with no graded outcome between; it stays,
since a repaired verifier is another item. ``flaky``: repeated runs of the verifier disagreed in the newest report
that decided it. ``verified`` follows the newest report, but an incomplete one, which only says that not everything was
asked, never takes the place of a complete one that passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from registry.derive.events import VERIFIER_CAUSES, OutcomeEvent, ReportEvent

BROKEN_AFTER = 3


@dataclass(frozen=True, slots=True)
class Flags:
    """``verified`` is none, partial, checked or failed; ``ungraded_run`` counts verifier-caused errors in a row."""

    verified: str = "none"
    broken: bool = False
    flaky: bool = False
    ungraded_run: int = 0


def after_outcome(flags: Flags, event: OutcomeEvent) -> tuple[Flags, str]:
    """Flags after an outcome, and why ``broken`` was raised (empty: it was not)."""
    if event.passed is None:
        if event.cause not in VERIFIER_CAUSES:
            return flags, ""
        run = flags.ungraded_run + 1
        breaks = run >= BROKEN_AFTER and not flags.broken
        return replace(flags, ungraded_run=run, broken=flags.broken or breaks), "verifier_errors" if breaks else ""
    if event.agent == "oracle" and not event.passed and not flags.broken:
        return replace(flags, ungraded_run=0, broken=True), "oracle_failed"
    return (replace(flags, ungraded_run=0) if flags.ungraded_run else flags), ""


def after_report(flags: Flags, event: ReportEvent) -> tuple[Flags, list[str]]:
    """Flags after a check report, and why each changed flag changed."""
    reasons = []
    broken, flaky = flags.broken, flags.flaky
    if event.oracle == "fail" and not broken:
        broken = True
        reasons.append("oracle_failed")
    if event.repeat in {"pass", "fail"} and flaky != (event.repeat == "fail"):
        flaky = event.repeat == "fail"
        reasons.append("repeat_failed" if flaky else "repeat_passed")
    verified = flags.verified if (flags.verified, event.verified) == ("checked", "partial") else event.verified
    return replace(flags, verified=verified, broken=broken, flaky=flaky), reasons

"""What estimates and states are folded from: four kinds of event in one order.

An outcome stands at its own id; a report, a prior and a retirement stand right after the newest outcome there was when
they arrived. A rebuild that reads the same events in this order derives the same standings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

VERIFIER_CAUSES = frozenset({"verifier_crash", "verifier_timeout", "verifier_reward", "verifier_memory"})
"""Causes that speak against the verifier; three in a row break an item.

Failures of the machinery do not count: neither a sandbox that could not be made ready for the verifier
(``verifier_setup``) nor a judge that was away (``judge_failed``) is the verifier's doing.
"""


class OutcomeEvent(NamedTuple):
    """A graded (``passed`` is a bool) or ungraded (`None`) outcome.

    ``lineage_id`` `None`: an agent that is no policy. ``weight_version`` is on the lineage's own count
    (`registry.derive.versions`). A tuple, since a bulk makes one an episode.
    """

    item_id: int
    lineage_id: int | None
    position: int
    passed: bool | None
    cause: str
    weight_version: int
    agent: str
    at: float


@dataclass(frozen=True, slots=True)
class ReportEvent:
    """A check report. ``oracle``, ``repeat``: how those checks came out, empty where they were not decided."""

    item_id: int
    position: int
    verified: str
    oracle: str
    repeat: str
    at: float


@dataclass(frozen=True, slots=True)
class PriorEvent:
    """A fit gave an item a prior for a lineage."""

    item_id: int
    lineage_id: int
    position: int
    alpha: float
    beta: float
    at: float


@dataclass(frozen=True, slots=True)
class RetireEvent:
    """A published refresh retired an item for a lineage."""

    item_id: int
    lineage_id: int
    position: int
    revision_id: int
    e_value: float
    at: float


Event = OutcomeEvent | ReportEvent | PriorEvent | RetireEvent


def report_event(item_id: int, position: int, report: dict[str, object], at: float) -> ReportEvent:
    """The event of a stored report (`envsdk.checks.report.CheckReport` as JSON)."""
    checks = report["checks"]
    assert isinstance(checks, list | tuple)
    found = {str(check["check"]): str(check["outcome"]) for check in checks}
    verdict = {"pass": "checked", "fail": "failed"}.get(str(report["verdict"]), "partial")
    if verdict == "checked" and not report["complete"]:
        verdict = "partial"
    return ReportEvent(item_id, position, verdict, found.get("oracle", ""), found.get("repeat", ""), at)

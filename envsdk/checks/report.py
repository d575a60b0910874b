"""What checking a task found: the record that lets it be published.

A report belongs to a pair of digests. ``complete`` says whether every check that applies was decided: "not assessed" is
not "passed" (law 9).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from envsdk.frozen import Frozen

CheckOutcome = Literal["pass", "fail", "error", "skipped"]
Verdict = Literal["pass", "fail", "error", "incomplete"]


class CheckResult(Frozen):
    """One question asked of one verifier. ``error``: could not be decided; ``skipped``: does not apply."""

    check: str
    outcome: CheckOutcome
    why: str = ""
    fix: str = ""
    evidence: dict[str, Any] = Field(default_factory=dict)
    seconds: float = 0.0


class CheckReport(Frozen):
    """All results of one task. ``verdict`` is derived: any fail is ``fail``, else any error is ``error``."""

    slug: str
    task_digest: str
    verifier_digest: str
    verdict: Verdict
    complete: bool
    checks: tuple[CheckResult, ...]
    sandbox: str = ""
    envsdk_version: str = ""
    checked_at: float = 0.0

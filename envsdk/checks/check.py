"""What a check is: one question about one verifier, asked on a `envsdk.checks.stage.Stage`, answered with evidence.

A check ``fails`` when it finds fault. "Cannot tell" is an outcome of its own (``error``), and so is "does not apply"
(``skipped``): neither is a pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from envsdk.checks.report import CheckOutcome
from envsdk.spec.model import VerifierSpec
from envsdk.verifying.verdict import Verdict

if TYPE_CHECKING:
    from envsdk.checks.stage import Stage

MACHINERY = frozenset({"upload_failed", "sandbox_lost", "download_failed"})
"""Verdict codes that say nothing about the verifier: the machinery under it failed."""
_TAIL_LINES = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. ``evidence`` is small, and enough to understand the finding without running it again."""

    outcome: CheckOutcome
    why: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """One question.

    Attributes:
        id: its name everywhere: command line, pytest ids, reports.
        question: what it asks, in one line.
        fix: what an author does about a failure.
        examine: asks it. Raises `EnvsdkError` where the machinery fails, which the engine reports as ``error``.
        needs: ``oracle``: it means nothing without one; ``passing_oracle``: nor unless that passes.
        runs_verifier: it plays scenes, for which the verifier must end.
        alone: asked when the task's other checks are done, which it would disturb.
    """

    id: str
    question: str
    fix: str
    examine: Callable[[Stage], Awaitable[Finding]]
    needs: Literal["", "oracle", "passing_oracle"] = ""
    runs_verifier: bool = True
    alone: bool = False


def passes(why: str = "", **evidence: Any) -> Finding:
    """No fault was found."""
    return Finding("pass", why, evidence)


def fails(why: str, **evidence: Any) -> Finding:
    """A fault was found."""
    return Finding("fail", why, evidence)


def undecided(why: str, **evidence: Any) -> Finding:
    """It could not be decided."""
    return Finding("error", why, evidence)


def does_not_apply(why: str) -> Finding:
    """The question has no meaning for this task."""
    return Finding("skipped", why)


def not_assessed(why: str) -> Finding:
    """The question has a meaning, and could not be asked: the task lacks what it needs. Not a pass."""
    return Finding("skipped", why, {"assessed": False})


def is_full(verdict: Verdict, verifier: VerifierSpec) -> bool:
    """The verdict is a success: a reward at the pass mark or above."""
    return verdict.reward is not None and verdict.reward >= verifier.success_at


def is_low(verdict: Verdict, verifier: VerifierSpec) -> bool:
    """The verdict is a valid reward below the pass mark."""
    return verdict.reward is not None and verdict.reward < verifier.success_at


def said(verdict: Verdict) -> str:
    """A verdict in a few words."""
    if verdict.reward is not None:
        return f"reward {verdict.reward:g}"
    return f"no reward: {verdict.code or verdict.status}"


def shown(verdict: Verdict) -> dict[str, Any]:
    """A verdict as evidence."""
    tail = verdict.evidence.stdout_tail.rstrip().splitlines()[-_TAIL_LINES:]
    found = {
        "verdict": said(verdict),
        "message": verdict.evidence.message,
        "exit_code": verdict.evidence.exit_code,
        "reward_file": verdict.evidence.reward_file,
        "output": "\n".join(tail),
    }
    return {key: value for key, value in found.items() if value not in {None, ""}}


def expect_low(verdict: Verdict, verifier: VerifierSpec, what: str) -> Finding:
    """The finding for something that must earn a valid reward below the pass mark."""
    if verdict.code in MACHINERY:
        return undecided(f"could not verify: {verdict.code}", **shown(verdict))
    if is_full(verdict, verifier):
        return fails(f"{what} earned the full reward", **shown(verdict))
    if not is_low(verdict, verifier):
        return fails(f"{what} got no reward at all ({verdict.code or verdict.status})", **shown(verdict))
    return passes(said(verdict))

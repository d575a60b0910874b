"""What a grader may say, and what it raises when the task, not the answer, is at fault."""

from __future__ import annotations

from typing import Literal

from envsdk.errors import VerifierError

Verdict = Literal["correct", "incorrect", "no_answer"]
"""``no_answer``: nothing in the candidate can be read as an answer of the asked kind. It earns the bottom of the range
as ``incorrect`` does, and is reported apart."""

WHITE_SPACE = " \t\r\n\v\f"
"""The characters that graders take for white space; no other space of Unicode."""


def judged(same: bool) -> Verdict:
    """``correct`` or ``incorrect``."""
    return "correct" if same else "incorrect"


def unreadable_truth(grader: str, truth: object) -> VerifierError:
    """The error for a truth that the grader cannot read: an error of the task, never a verdict about the answer."""
    return VerifierError(
        f"the truth {truth!r} cannot be read by the grader {grader}",
        code="unreadable_truth",
        hint="correct the truth of the task",
    )

"""Whole text against whole text."""

from __future__ import annotations

import re

from envsdk.graders.verdict import WHITE_SPACE, Verdict, judged, unreadable_truth

_RUN = re.compile(f"[{WHITE_SPACE}]+")


def exact(candidate: str, truth: str, *, ignore_case: bool = False, collapse_whitespace: bool = False) -> Verdict:
    """Same text once white space is stripped at both ends. Letter case, order and inner space matter.

    Args:
        candidate: the answer; empty is ``no_answer``.
        truth: the right text, not empty.
        ignore_case: compare case-folded.
        collapse_whitespace: take any run of white space for one space.

    Raises:
        VerifierError: ``unreadable_truth`` for an empty truth.
    """

    def form(text: str) -> str:
        text = text.strip(WHITE_SPACE)
        text = _RUN.sub(" ", text) if collapse_whitespace else text
        return text.casefold() if ignore_case else text

    if not form(truth):
        raise unreadable_truth("exact", truth)
    answer = form(candidate)
    return judged(answer == form(truth)) if answer else "no_answer"

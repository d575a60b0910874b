"""What a program printed against what it should have printed."""

from __future__ import annotations

from envsdk.graders.verdict import Verdict, judged


def code_output(candidate: str, truth: str) -> Verdict:
    """Same lines. Trailing space, tab and CR of a line and empty lines at the end are ignored; all else counts.

    Any text is an output, the empty one included, so there is no ``no_answer`` here.
    """
    return judged(_lines(candidate) == _lines(truth))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip(" \t\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines

"""One number against one number, compared exactly as decimals."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from envsdk.errors import UsageError
from envsdk.graders.number import Number, Reading, from_option, read_number, within
from envsdk.graders.verdict import WHITE_SPACE, Verdict, judged, unreadable_truth

_DRESSING = "*_()[]\"'`:;,!?\u201c\u201d\u2018\u2019\u00ab\u00bb"
_HUNDREDTH = Number(Decimal(1), -2)


def numeric(
    candidate: str,
    truth: str,
    *,
    abs_tol: float | str = 0,
    rel_tol: float | str = 0,
    percent: Literal["same", "fraction", "face"] = "same",
    where: Literal["whole", "last"] = "whole",
) -> Verdict:
    """Right where ``|candidate - truth| <= max(abs_tol, rel_tol * |truth|)``, the end included.

    Args:
        candidate: the answer; not one number of the grammar is ``no_answer``.
        truth: one number of the same grammar.
        abs_tol: absolute tolerance, at least 0.
        rel_tol: tolerance relative to the truth, at least 0.
        percent: ``same``: a percent sign must be on both or neither; ``fraction``: p% is p/100; ``face``: ignored.
        where: ``whole``: the candidate is the number; ``last``: its last word that is a number counts.

    Raises:
        VerifierError: ``unreadable_truth``.
        UsageError: an option is out of range.
    """
    right = _whole(truth)
    if right is None:
        raise unreadable_truth("numeric", truth)
    near, share = _tolerance("abs_tol", abs_tol), _tolerance("rel_tol", rel_tol)
    answer = _last(candidate) if where == "last" else _whole(candidate)
    if answer is None:
        return "no_answer"
    if percent == "same" and answer.percent != right.percent:
        return "incorrect"
    got, want = _value(answer, percent), _value(right, percent)
    return judged(within(got, want, near) or within(got, want, share * abs(want)))


def _whole(text: str) -> Reading | None:
    return read_number(text.strip(WHITE_SPACE).removesuffix("."))


def _last(text: str) -> Reading | None:
    words = (word for word in reversed(_words(text)) if word)
    return next((reading for word in words if (reading := read_number(_undressed(word)))), None)


def _words(text: str) -> list[str]:
    for space in WHITE_SPACE:
        text = text.replace(space, " ")
    return text.split(" ")


def _undressed(word: str) -> str:
    bare = word.strip(_DRESSING)
    return bare.removesuffix(".").strip(_DRESSING) if bare.endswith(".") else bare


def _value(reading: Reading, percent: str) -> Number:
    return reading.value * _HUNDREDTH if reading.percent and percent == "fraction" else reading.value


def _tolerance(name: str, value: float | str) -> Number:
    try:
        return from_option(value)
    except ValueError as error:
        raise UsageError(
            f"{name}: {error}", code="bad_grader_option", hint="such as 0.01 or '1e-6'", where="numeric"
        ) from error

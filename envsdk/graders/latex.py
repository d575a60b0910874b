r"""Boxes in LaTeX text: the content of the last ``\boxed{..}`` and the one form in which two contents are compared."""

from __future__ import annotations

import re

from envsdk.graders.number import MINUS_SIGN, WHOLE_DIGITS, Number, read_number
from envsdk.graders.verdict import WHITE_SPACE

_BOX = re.compile(r"\\boxed\s*\{")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)
_WRAPPERS = {r"\text", r"\textbf", r"\mathrm", r"\mathbf"}
_DROPPED = {r"\left", r"\right", r"\,", r"\!", r"\;", r"\:", *("\\" + space for space in WHITE_SPACE), *WHITE_SPACE}
_SHAPES = {r"\dfrac": r"\frac", r"\tfrac": r"\frac"}
_DECIMAL = re.compile(rf"[+-]?(?:{WHOLE_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)")
_RATIO = re.compile(r"(?P<sign>[+-]?)(?P<over>[0-9]+)/(?P<under>[+-]?[0-9]+)")
_FRAC = re.compile(
    r"(?P<sign>[+-]?)\\frac(?:\{(?P<over>[+-]?[0-9]+)\}|(?P<over1>[0-9]))(?:\{(?P<under>[+-]?[0-9]+)\}|(?P<under1>[0-9]))"
)


def last_box(text: str) -> str | None:
    r"""Content of the last ``\boxed{..}``; empty where it has none or never closes; `None` where there is no box."""
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    end = _closing(text, boxes[-1].end())
    return "" if end is None else text[boxes[-1].end() : end]


def normal_form(content: str) -> str:
    r"""Text of a box as it is compared.

    Text wrappers are unwrapped; ``\left``, ``\right``, thin spaces and white space removed; ``\dfrac`` and ``\tfrac``
    read as ``\frac``; ``$`` at the ends and one final period dropped.
    """
    flat = "".join(_flat(content)).strip("$")
    return flat.removesuffix(".").strip("$")


def read_value(normal: str) -> tuple[Number, Number] | None:
    r"""The number that a normal form is: integer, decimal, ``a/b`` or ``\frac``; `None` for anything else.

    Two numbers, the second not 0: their ratio.
    """
    text = normal.replace(MINUS_SIGN, "-").replace("{,}", ",")
    if _DECIMAL.fullmatch(text):
        return _ratio("", text.removesuffix("."), "1")
    if match := _RATIO.fullmatch(text):
        return _ratio(match["sign"], match["over"], match["under"])
    if match := _FRAC.fullmatch(text):
        return _ratio(match["sign"], match["over"] or match["over1"], match["under"] or match["under1"])
    return None


def _ratio(sign: str, over: str, under: str) -> tuple[Number, Number] | None:
    first, second = read_number(over), read_number(under)
    if first is None or second is None or not second.value.digits:
        return None
    return -first.value if sign == "-" else first.value, second.value


def _closing(text: str, start: int) -> int | None:
    """Where the brace opened just before ``start`` closes; escaped braces do not count."""
    depth = 1
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.start()
    return None


def _flat(content: str) -> list[str]:
    """Tokens that are compared, with the braces of wrappers gone."""
    kept: list[str] = []
    wrapped: list[bool] = []  # for each open brace, whether it belongs to a wrapper
    after_wrapper = False
    for match in _TOKEN.finditer(content):
        part = _SHAPES.get(match[0], match[0])
        if part in _DROPPED:
            continue
        if part == "{":
            wrapped.append(after_wrapper)
        opened = part == "{" and after_wrapper
        closed = part == "}" and bool(wrapped) and wrapped.pop()
        after_wrapper = part in _WRAPPERS
        if not (opened or closed or after_wrapper):
            kept.append(part)
    return kept

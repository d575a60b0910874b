"""Exact decimal numbers: a text grammar and arithmetic, without doubles or cost that grows with an exponent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

MINUS_SIGN = "\u2212"
"""U+2212, as models print it; counts as a minus."""

WHOLE_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
"""Digits, with commas only in exact groups of three."""

_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)(?:(?P<whole>{WHOLE_DIGITS})(?:\.(?P<part>[0-9]+))?|\.(?P<only>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+))?(?P<percent>%?)"
)
_GAP = 3  # decimal places by which a term must lie below all others to decide nothing unless they cancel


@dataclass(frozen=True, slots=True, order=False)
class Number:
    """``digits * 10 ** exponent``, with no factor of ten in ``digits``; zero is ``(0, 0)``. Equal values are equal."""

    digits: int
    exponent: int

    def __mul__(self, other: Number) -> Number:
        return normal(self.digits * other.digits, self.exponent + other.exponent)

    def __neg__(self) -> Number:
        return Number(-self.digits, self.exponent)

    def __abs__(self) -> Number:
        return Number(abs(self.digits), self.exponent)


@dataclass(frozen=True, slots=True)
class Reading:
    """A number as it stood in a text, and whether a percent sign ended it."""

    value: Number
    percent: bool


def normal(digits: int, exponent: int) -> Number:
    """The one form of a value."""
    if digits == 0:
        return Number(0, 0)
    text = Decimal(digits).as_tuple().digits
    zeros = next(count for count, digit in enumerate(reversed(text)) if digit)
    return Number(digits // 10**zeros, exponent + zeros)


def read_number(text: str) -> Reading | None:
    """The number that ``text`` is, whole and exactly, or `None`. White space is not stripped here."""
    match = _NUMBER.fullmatch(text.replace(MINUS_SIGN, "-"))
    if match is None:
        return None
    whole, part = (match["whole"] or "").replace(",", ""), match["part"] or match["only"] or ""
    digits = _int(whole + part)
    value = normal(-digits if match["sign"] == "-" else digits, _int(match["exponent"] or "0") - len(part))
    return Reading(value, bool(match["percent"]))


def from_option(value: float | str) -> Number:
    """A number that an author gave as an option: a float means its shortest decimal text.

    Raises:
        ValueError: it is not a finite number of at least 0.
    """
    reading = read_number(repr(value) if isinstance(value, float) else str(value))
    if reading is None or reading.percent or reading.value.digits < 0:
        raise ValueError(f"{value!r} is not a number of at least 0")
    return reading.value


def within(left: Number, right: Number, tolerance: Number) -> bool:
    """``|left - right| <= tolerance``, the end included, exactly."""
    above = sign_of_sum((left, -right, -tolerance))
    below = sign_of_sum((right, -left, -tolerance))
    return above <= 0 and below <= 0


def sign_of_sum(terms: Iterable[Number]) -> int:
    """-1, 0 or 1, exactly, in time that depends on the digits written and not on the exponents.

    Terms are taken from the largest down, as many together as overlap; a term too far below to matter decides only
    where those above cancel.
    """
    left = sorted((term for term in terms if term.digits), key=_magnitude, reverse=True)
    while left:
        group = [left.pop(0)]
        while left and _magnitude(left[0]) >= min(term.exponent for term in group) - _GAP:
            group.append(left.pop(0))
        lowest = min(term.exponent for term in group)
        total = sum(term.digits * 10 ** (term.exponent - lowest) for term in group)
        if total:
            return 1 if total > 0 else -1
    return 0


def _magnitude(term: Number) -> int:
    return Decimal(term.digits).adjusted() + term.exponent


def _int(text: str) -> int:
    return int(Decimal(text))  # int() itself refuses more than 4,300 digits

"""Exact decimal numbers: a text grammar and arithmetic, without doubles or cost that grows with an exponent.

Time is in proportion to the digits written: a candidate of a million digits takes milliseconds. Digits are kept as
`decimal.Decimal`, whose arithmetic is exact where the precision is chosen wide enough; to and from `int` would be
quadratic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

MINUS_SIGN = "\u2212"
"""U+2212, as models print it; counts as a minus."""

WHOLE_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
"""Digits, with commas only in exact groups of three."""

MAX_EXPONENT_DIGITS = 4000
"""Longer exponents are no numbers."""

_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)(?:(?P<whole>{WHOLE_DIGITS})(?:\.(?P<part>[0-9]+))?|\.(?P<only>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+))?(?P<percent>%?)"
)
_GAP = 3  # decimal places by which a term must lie below all others to decide nothing unless they cancel


@dataclass(frozen=True, slots=True, order=False)
class Number:
    """``digits * 10 ** exponent``: an integral `Decimal` with no factor of ten; zero is ``(0, 0)``. Equal is equal."""

    digits: Decimal
    exponent: int

    def __mul__(self, other: Number) -> Number:
        width = self.width + other.width
        product = _context(width).multiply(self.digits, other.digits)
        return normal(f"{product:f}", self.exponent + other.exponent)

    def __neg__(self) -> Number:
        return Number(self.digits.copy_negate() if self.digits else self.digits, self.exponent)

    def __abs__(self) -> Number:
        return Number(self.digits.copy_abs(), self.exponent)

    @property
    def width(self) -> int:
        """How many digits it has."""
        return self.digits.adjusted() + 1


@dataclass(frozen=True, slots=True)
class Reading:
    """A number as it stood in a text, and whether a percent sign ended it."""

    value: Number
    percent: bool


def normal(digits: str, exponent: int) -> Number:
    """The one form of a value, from decimal digits with an optional sign."""
    bare = digits.rstrip("0")
    if bare in {"", "-"}:
        return Number(Decimal(0), 0)
    return Number(Decimal(bare), exponent + len(digits) - len(bare))


def read_number(text: str) -> Reading | None:
    """The number that ``text`` is, whole and exactly, or `None`. White space is not stripped here."""
    match = _NUMBER.fullmatch(text.replace(MINUS_SIGN, "-"))
    if match is None:
        return None
    exponent = match["exponent"] or "0"
    power = exponent.lstrip("+-").lstrip("0") or "0"
    if len(power) > MAX_EXPONENT_DIGITS:
        return None
    shift = -int(power) if exponent.startswith("-") else int(power)
    whole, part = (match["whole"] or "").replace(",", ""), match["part"] or match["only"] or ""
    value = normal(("-" if match["sign"] == "-" else "") + whole + part, shift - len(part))
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


def same_ratio(left: tuple[Number, Number], right: tuple[Number, Number]) -> bool:
    """Two ratios are one number, exactly; no denominator is 0."""
    return left[0] * right[1] == right[0] * left[1]


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
        context = _context(_magnitude(group[0]) - lowest + 2)
        total = Decimal(0)
        for term in group:
            total = context.add(total, context.scaleb(term.digits, term.exponent - lowest))
        if total:
            return 1 if total > 0 else -1
    return 0


def _context(width: int) -> Context:
    """Room for a result of ``width`` digits, so that it is exact."""
    return Context(prec=max(1, width), Emax=MAX_EMAX, Emin=MIN_EMIN)


def _magnitude(term: Number) -> int:
    return term.digits.adjusted() + term.exponent

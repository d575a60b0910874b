"""Wrong numbers: far off, of another size, sign or length, beside others, and no number at all."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from decimal import Decimal

from envsdk.checks.mutation.wording import Wording

MAY_BE_RIGHT = frozenset({"the number plus 1", "the number minus 1", "twice the number"})
"""Of several numbers with a property another one: close by, where nothing else passes."""
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_MANY = 1000
_LARGE = 10**9
_SHARE = 20
"""A rounding by less than one part in so many may be within what a verifier rightly forgives."""
_PERIOD = 2 * 3 * 5 * 7


def others(bare: str, wording: Wording) -> Iterator[tuple[str, str]]:
    """Name and text of wrong variations of a text that is one number; none of them has its value.

    Under a tolerance that the instruction states only what is far off is wrong, and what is no number.
    """
    for name, other in _others(bare, wording):
        if not (NUMBER.fullmatch(other.strip()) and Decimal(other.strip()) == Decimal(bare)):
            yield name, other


def _others(bare: str, wording: Wording) -> Iterator[tuple[str, str]]:
    value = Decimal(bare)
    far = 10 * max(Decimal(1), abs(value))
    yield "the number far off", f"{like(bare, value + far)}\n"
    yield "the number far off below", f"{like(bare, value - far)}\n"
    yield "the text nan", "nan\n"
    if wording.tolerance:
        if wording.allowed:
            size = Decimal(str(wording.allowed)) * (abs(value) / 100 if wording.is_share else 1)
            yield "the number three times the stated tolerance off", f"{value + 3 * size}\n"
        elif wording.unit:
            yield "the number ten times its rounding off", f"{value + 10 * Decimal(str(wording.unit))}\n"
        return
    yield "the constant 0", "0\n"
    yield "twice the number", f"{like(bare, 2 * value)}\n"
    yield "the number with the other sign", f"{like(bare, -value)}\n"
    yield "the number plus 1", f"{like(bare, value + 1)}\n"
    yield "the number minus 1", f"{like(bare, value - 1)}\n"
    yield "the number with a digit more in front", f"{'-' if value < 0 else ''}1{bare.lstrip('+-')}\n"
    if "." in bare:
        yield "the number with another first decimal", f"{like(bare, value + Decimal('0.4'))}\n"
        yield "the number with a lower first decimal", f"{like(bare, value - Decimal('0.4'))}\n"
        if abs(whole := value.to_integral_value()) and abs(whole - value) >= abs(value) / _SHARE:
            yield "the number rounded to a whole one", f"{whole}\n"
    else:
        yield "the number with a digit more behind", f"{bare}7\n"
    if value == int(value) and 0 < value < _LARGE:
        yield from _of_its_kind(int(value))
    if 0 < value < _MANY - 1 and value == int(value) and not wording.contains:
        yield "every number there is", "".join(f"{number}\n" for number in range(_MANY))


def _of_its_kind(value: int) -> Iterator[tuple[str, str]]:
    """Larger numbers that share a property which a verifier may have taken for the answer itself."""
    yield "a number with the same remainders", f"{value + _PERIOD}\n"
    yield "its digits in reverse", f"{str(value)[::-1]}\n"
    if _is_prime(value):
        yield "the next prime", f"{next(n for n in itertools.count(value + 1) if _is_prime(n))}\n"
    root = math.isqrt(value)
    if root * root == value:
        yield "the next square", f"{(root + 1) ** 2}\n"


def _is_prime(value: int) -> bool:
    return value > 1 and all(value % divisor for divisor in range(2, math.isqrt(value) + 1))


def plus(number: str, step: int) -> str:
    """The number with ``step`` added, with as many decimals."""
    return like(number, Decimal(number) + step)


def every_plus_one(text: str) -> str:
    """The text with each of its numbers one larger."""
    return NUMBER.sub(lambda match: plus(match[0], 1), text)


def like(model: str, value: Decimal) -> str:
    """A value with as many decimals as ``model`` has."""
    places = len(model.partition(".")[2])
    return f"{value:.{places}f}"

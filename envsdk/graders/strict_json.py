"""JSON read strictly and exactly: no duplicate keys, no NaN, numbers as decimals of any size."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from envsdk.graders.number import Number, read_number


def parse(text: str, *, number: Callable[[str], Any]) -> Any:
    """The value of a JSON text; each number's text goes through ``number``.

    Raises:
        ValueError: not strict JSON, a key that occurs twice in one object, or nested too deeply to read.
    """
    try:
        return json.loads(
            text, parse_int=number, parse_float=number, parse_constant=_no_constant, object_pairs_hook=_object
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def same(left: Any, right: Any) -> bool:
    """Structural equality of two values parsed with `exact_number`: key order is free, array order is not."""
    pending = [(left, right)]
    while pending:
        one, other = pending.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if one.keys() != other.keys():
                return False
            pending.extend((value, other[key]) for key, value in one.items())
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            pending.extend(zip(one, other, strict=True))
        elif one != other:
            return False
    return True


def exact_number(text: str) -> Number:
    """A JSON number as an exact decimal: 1, 1.0 and 1e0 are one value."""
    reading = read_number(text)
    if reading is None:
        raise ValueError(f"{text!r} is not a number")
    return reading.value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

"""Strict JSON for reward files: RFC 8259, UTF-8 without BOM, numbers only.

A small parser of its own, since the standard one guesses encodings, keeps the last of two equal keys, recurses without
a bound and has no names for what is wrong. Order of faults: malformed, duplicate key, wrong type, not finite.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from envsdk.errors import VerifierError

MAX_DEPTH = 64
_HINT = 'write one finite number inside the task\'s range to reward.txt, or {"reward": number} to reward.json'
_NOT_FINITE_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_LITERALS = {"true": True, "false": False, "null": None}


class _MalformedError(Exception):
    """The text is not strict JSON; says where."""


class _Pairs(list[tuple[str, Any]]):
    """An object's members in order, equal keys kept."""


def parse_reward_json(data: bytes, *, where: str = "") -> dict[str, float]:
    """The named numbers of a ``reward.json``; a bare number is named ``reward``.

    Raises:
        VerifierError: malformed_reward, duplicate_key, wrong_type_reward, non_finite_reward or empty_reward.
    """
    try:
        value = _document(data.decode("utf-8"))
    except (_MalformedError, UnicodeDecodeError) as error:
        raise reward_error("malformed_reward", f"not strict JSON: {error}", where) from None
    if isinstance(value, _Pairs) and not value:
        raise reward_error("empty_reward", "the object has no members", where)
    if (key := _duplicate(value)) is not None:
        raise reward_error("duplicate_key", f"key {key!r} occurs twice in one object", where)
    members = value if isinstance(value, _Pairs) else [("reward", value)]
    wrong = [key for key, member in members if not isinstance(member, float)]
    if wrong:
        raise reward_error("wrong_type_reward", f"{wrong[0]!r} is not a number", where)
    if endless := [key for key, member in members if not math.isfinite(member)]:
        raise reward_error("non_finite_reward", f"{endless[0]!r} is not finite", where)
    return {key: member + 0.0 for key, member in members}


def reward_error(code: str, message: str, where: str) -> VerifierError:
    """What is wrong with a reward file, and what to write; ``code`` is one of `envsdk.verifying.reward.CODES`."""
    return VerifierError(message, code=code, hint=_HINT, where=where)


def _document(text: str) -> Any:
    value, end = _value(text, _skip(text, 0), depth=0)
    if _skip(text, end) != len(text):
        raise _MalformedError(f"text after the value at column {end}")
    if _has_lone_surrogate(value):
        raise _MalformedError("a key holds a lone surrogate")
    return value


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    head = text[at : at + 1]
    if head == "{":
        return _object(text, at, depth + 1)
    if head == "[":
        return _array(text, at, depth + 1)
    if head == '"':
        return _string(text, at)
    for word, literal in (*_LITERALS.items(), *_NOT_FINITE_WORDS.items()):
        if text.startswith(word, at):
            return literal, at + len(word)
    if match := _NUMBER.match(text, at):
        return float(match[0]), match.end()
    raise _MalformedError(f"no value at column {at}")


def _string(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if not match:
        raise _MalformedError(f"bad string at column {at}")
    return json.loads(match[0]), match.end()


def _object(text: str, at: int, depth: int) -> tuple[_Pairs, int]:
    _bounded(depth)
    pairs = _Pairs()
    at = _skip(text, at + 1)
    if text.startswith("}", at):
        return pairs, at + 1
    while True:
        if not text.startswith('"', at):
            raise _MalformedError(f"no key at column {at}")
        key, at = _string(text, at)
        at = _skip(text, at)
        if not text.startswith(":", at):
            raise _MalformedError(f"no colon at column {at}")
        member, at = _value(text, _skip(text, at + 1), depth)
        pairs.append((key, member))
        at, more = _separator(text, at, "}")
        if not more:
            return pairs, at


def _array(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    _bounded(depth)
    members: list[Any] = []
    at = _skip(text, at + 1)
    if text.startswith("]", at):
        return members, at + 1
    while True:
        member, at = _value(text, at, depth)
        members.append(member)
        at, more = _separator(text, at, "]")
        if not more:
            return members, at


def _separator(text: str, at: int, close: str) -> tuple[int, bool]:
    at = _skip(text, at)
    if text.startswith(close, at):
        return at + 1, False
    if not text.startswith(",", at):
        raise _MalformedError(f"no comma or {close} at column {at}")
    return _skip(text, at + 1), True


def _bounded(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _MalformedError(f"nested deeper than {MAX_DEPTH} levels")


def _inside(value: Any) -> list[Any]:
    return [member for _, member in value] if isinstance(value, _Pairs) else value if isinstance(value, list) else []


def _duplicate(value: Any) -> str | None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, _ in value:
            if key in seen:
                return key
            seen.add(key)
    return next((found for member in _inside(value) if (found := _duplicate(member)) is not None), None)


def _has_lone_surrogate(value: Any) -> bool:
    if isinstance(value, _Pairs) and any(0xD800 <= ord(letter) <= 0xDFFF for key, _ in value for letter in key):
        return True
    return any(_has_lone_surrogate(member) for member in _inside(value))

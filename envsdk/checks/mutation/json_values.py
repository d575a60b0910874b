"""Wrong JSON: an empty value, and an object in which one thing that the instruction names is missing or another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from envsdk.checks.mutation.wording import Wording

MAX_KEYS = 8


def parsed(text: str) -> Any:
    """The object or list that a text is; `None` for anything else."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) and value else None


def others(value: Any, wording: Wording, instruction: str, inputs: str = "") -> Iterator[tuple[str, str]]:
    """Name and text of wrong variations of a JSON value that is not empty.

    Only what the instruction names, or the task's ``inputs`` give, is surely asked for: other keys are left alone.
    """
    yield "an empty JSON object", "{}\n"
    yield "an empty JSON list", "[]\n"
    if isinstance(value, list):
        yield "the JSON list without its last member", _written(value[:-1])
        if not (wording.contains or wording.tolerance or wording.free) and (more := _one_more(value)) is not None:
            yield "the JSON list with a member too many", _written([*value, more])
        if wording.in_order and value[::-1] != value:
            yield "the JSON list in reverse", _written(value[::-1])
        if isinstance(value[-1], dict):
            for name, other in _members(value[-1], wording, instruction, inputs):
                yield f"the JSON list with its last {name}", _written([*value[:-1], other])
        return
    for name, other in _members(value, wording, instruction, inputs):
        yield f"the JSON {name}", _written(other)


def _members(
    value: dict[str, Any], wording: Wording, instruction: str, inputs: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects in which one member is missing or another, or two have each other's value."""
    keys = [key for key in value if _is_named(key, instruction) or _is_named(key, inputs)][:MAX_KEYS]
    for key in keys:
        yield f"object without {key!r}", {name: old for name, old in value.items() if name != key}
        other = _other(value[key], wording, inputs)
        if other is not None:
            yield f"object with another value of {key!r}", {**value, key: other}
    numbers = [key for key in keys if type(value[key]) in {int, float}]
    pair = next(((a, b) for a in numbers for b in numbers if value[a] != value[b]), None)
    if pair and not wording.tolerance:
        yield "object with two values exchanged", {**value, pair[0]: value[pair[1]], pair[1]: value[pair[0]]}


def _one_more(value: list[Any]) -> object:
    """A member of the kind of the others that is none of them; `None` where they are of no kind that is known here."""
    if all(isinstance(member, str) for member in value):
        return "x" * (1 + max(map(len, value)))
    if all(type(member) in {int, float} for member in value):
        return max(value) + 1
    return None


def _other(value: object, wording: Wording, inputs: str) -> object:
    """A value that is surely wrong; `None` for free text, of which nobody can tell."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 10 + 1000 if wording.tolerance else value + 1
    if isinstance(value, list) and len(value) > 1:
        return value[:-1]
    if isinstance(value, str) and len(value) > 1 and _is_named(value, inputs):
        return "x"
    return None


def _is_named(key: str, instruction: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(key)}(?!\w)", instruction) is not None


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"

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


def others(value: Any, wording: Wording, instruction: str) -> Iterator[tuple[str, str]]:
    """Name and text of wrong variations of a JSON value that is not empty."""
    yield "an empty JSON object", "{}\n"
    yield "an empty JSON list", "[]\n"
    if isinstance(value, list):
        yield "the JSON list without its last member", _written(value[:-1])
        return
    for key in [key for key in value if _is_named(key, instruction)][:MAX_KEYS]:
        yield f"the JSON object without {key!r}", _written({name: old for name, old in value.items() if name != key})
        other = _other(value[key], wording)
        if other is not None:
            yield f"another value of {key!r}", _written({**value, key: other})


def _other(value: object, wording: Wording) -> object:
    """A value that is surely wrong; `None` for free text, of which nobody can tell."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 10 + 1000 if wording.tolerance else value + 1
    if isinstance(value, list) and len(value) > 1:
        return value[:-1]
    return None


def _is_named(key: str, instruction: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(key)}(?!\w)", instruction) is not None


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"

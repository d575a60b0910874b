"""A wrong value for every right one, to see that a judge compares."""

from __future__ import annotations

from typing import Any


def wrong(value: Any) -> Any:
    """Another value of the same type where it has one."""
    match value:
        case bool():
            return not value
        case None:
            return 12345
        case str():
            return value + "?"
        case int() | float():
            return -1 - abs(value)
        case list():
            return [*value, "one more"]
        case _:
            return {**value, "one more": 1.0}

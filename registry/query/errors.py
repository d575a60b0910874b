"""What is wrong with a query, and where."""

from __future__ import annotations

from collections.abc import Iterable

from envsdk.errors import UsageError
from envsdk.suggest import did_you_mean


class QueryError(UsageError):
    """A query has a fault. ``column`` counts characters from 1; ``length`` is how many of them are at fault.

    Codes: ``query_syntax``, ``query_unknown_field``, ``query_bad_value``, ``query_too_long``,
    ``query_unknown_policy``, ``query_unknown_set``, ``query_bad_cursor``.
    """

    default_code = "query_syntax"

    def __init__(self, message: str, *, column: int, length: int = 1, code: str | None = None, hint: str = "") -> None:
        super().__init__(message, code=code, hint=hint, where=f"column {column}")
        self.column = column
        self.length = max(1, length)

    def pointer(self, text: str) -> str:
        """The query with carets under the fault, two lines; the second aligns where characters are one cell wide."""
        shown = "".join(character if character.isprintable() else " " for character in text)
        return f"{shown}\n{' ' * (self.column - 1)}{'^' * self.length}"


def suggestion(given: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or all of them where none is near."""
    words = list(known)
    return did_you_mean(given.lower(), words, cutoff=0.6) or f"one of: {', '.join(words)}"

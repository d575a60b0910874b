"""A query as data. ``str(query)`` writes it so that parsing gives the same query again."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

_BARE = re.compile(r'[^\s",:\-][^\s",:]*')


@dataclass(frozen=True, slots=True)
class Span:
    """A range of numbers, both ends included; `None` leaves an end open."""

    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{_end(self.low)}..{_end(self.high)}"


def _end(number: float | None) -> str:
    return "" if number is None else repr(number).removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: a field and the values that satisfy it; free words have field ``word``.

    ``column`` is where it stands, for errors; it is no part of what the query means.
    """

    field: str
    values: tuple[str, ...] = ()
    span: Span | None = None
    negated: bool = False
    column: int = dataclasses.field(default=1, compare=False)

    def __str__(self) -> str:
        sign = "-" if self.negated else ""
        if self.field == "word":
            return sign + quoted(self.values[0])
        value = str(self.span) if self.span is not None else ",".join(quoted(value) for value in self.values)
        return f"{sign}{self.field}:{value}"


@dataclass(frozen=True, slots=True)
class Sort:
    """Order of results; ties are broken by the item's number, so pages never repeat or miss one."""

    key: str = "learnability"
    descending: bool = True

    def __str__(self) -> str:
        return f"sort:{'-' if self.descending else ''}{self.key}"


BEST_FIRST = Sort()


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions that must all hold, whose estimates they speak of, the order, and how many results at most."""

    terms: tuple[Term, ...] = ()
    policy: Term | None = None
    sort: Sort = BEST_FIRST
    limit: int | None = None

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms]
        if self.policy is not None:
            parts.append(str(self.policy))
        if self.sort != BEST_FIRST:
            parts.append(str(self.sort))
        if self.limit is not None:
            parts.append(f"limit:{self.limit}")
        return " ".join(parts)


def quoted(value: str) -> str:
    """``value`` as it stands in a query: bare where that reads back the same, else in double quotes."""
    if _BARE.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

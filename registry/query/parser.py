"""Read a query: check every field and value, and say at which column what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from registry.query.ast import Query, Sort, Span, Term
from registry.query.errors import QueryError, suggestion
from registry.query.lexer import RawTerm, RawValue, split
from registry.saturation.states import STATUSES

_T = TypeVar("_T")
FLAGS = ("broken", "flaky")
VERIFIED = ("none", "partial", "checked", "failed")
SORT_KEYS = ("learnability", "p", "n", "slug", "updated")
MAX_LIMIT = 100_000
MAX_VALUES = 50
_LIMIT = re.compile(r"[1-9][0-9]{0,8}")

_CHOICES = {"status": STATUSES, "flag": FLAGS, "verifier": VERIFIED}
_TEXTS = frozenset({"tag", "family", "set"})
_SPANS: dict[str, tuple[float, float]] = {"p": (0.0, 1.0), "n": (0.0, math.inf)}
FIELDS = ("status", "tag", "flag", "p", "n", "policy", "family", "verifier", "set", "saved", "sort", "limit")


def parse(text: str) -> Query:
    """The query that ``text`` writes; an empty one matches everything.

    Raises:
        QueryError: with the column of the first fault and a suggestion.
    """
    terms: list[Term] = []
    once: dict[str, RawTerm] = {}
    for raw in split(text):
        if raw.field in {"policy", "sort", "limit"}:
            _only_once(raw, once)
        else:
            terms.append(_term(raw))
    return Query(
        terms=tuple(terms),
        policy=_once(once, "policy", _policy),
        sort=_once(once, "sort", _sort) or Sort(),
        limit=_once(once, "limit", _limit),
    )


def _once(once: dict[str, RawTerm], field: str, read: Callable[[RawTerm], _T]) -> _T | None:
    return read(once[field]) if field in once else None


def _only_once(raw: RawTerm, once: dict[str, RawTerm]) -> None:
    if raw.negated:
        raise QueryError(f"{raw.field}: cannot be negated", column=raw.column, hint="remove the minus")
    if raw.field in once:
        raise QueryError(f"{raw.field}: is given twice", column=raw.column, hint="keep one")
    if len(raw.values) > 1:
        raise QueryError(f"{raw.field}: takes one value", column=raw.values[1].column, hint="keep one")
    once[raw.field] = raw


def _term(raw: RawTerm) -> Term:
    if not raw.field:
        return Term("word", (raw.values[0].text.lower(),), negated=raw.negated, column=raw.column)
    if len(raw.values) > MAX_VALUES:
        raise QueryError(f"more than {MAX_VALUES} values", column=raw.values[MAX_VALUES].column, code="query_too_long")
    if raw.field in _CHOICES:
        values = tuple(_choice(value, raw.field) for value in raw.values)
        return Term(raw.field, values, negated=raw.negated, column=raw.column)
    if raw.field in _TEXTS:
        values = tuple(value.text.lower() if raw.field != "set" else value.text for value in raw.values)
        return Term(raw.field, values, negated=raw.negated, column=raw.column)
    if raw.field == "saved":
        if raw.negated or len(raw.values) > 1:
            raise QueryError("saved: takes one name and no minus", column=raw.column, length=len(raw.field))
        return Term("saved", (raw.values[0].text,), column=raw.column)
    if raw.field in _SPANS:
        if len(raw.values) > 1:
            raise QueryError(f"{raw.field}: takes one range", column=raw.values[1].column, hint="write LOW..HIGH")
        return Term(raw.field, span=_span(raw.values[0], raw.field), negated=raw.negated, column=raw.column)
    raise QueryError(
        f"there is no field {raw.field!r}",
        column=raw.field_column,
        length=len(raw.field),
        code="query_unknown_field",
        hint=f'{suggestion(raw.field, FIELDS)} (to search for the text itself, put it in "...")',
    )


def _choice(value: RawValue, field: str) -> str:
    text = value.text.lower()
    if text not in _CHOICES[field]:
        raise _bad_value(value, f"{field}: knows no {value.text!r}", suggestion(text, _CHOICES[field]))
    return text


def _span(value: RawValue, field: str) -> Span:
    least, most = _SPANS[field]
    low, dots, high = value.text.partition("..")
    if not dots or not (low or high):
        raise _bad_value(value, f"{value.text!r} is no range", f"write {field}:LOW..HIGH; either end may be left out")
    ends = []
    for text, offset in ((low, 0), (high, len(low) + 2)):
        end = _number(text)
        if end is not None and not least <= end <= most:
            raise QueryError(
                f"{text!r} is no value of {field}",
                column=value.column + offset,
                length=len(text),
                code="query_bad_value",
                hint=f"give a number from {least:g} to {most:g}" if most < math.inf else "give a number of 0 or more",
            )
        ends.append(end)
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise _bad_value(value, f"the range {value.text} is empty", f"write {field}:{high}..{low}")
    return Span(ends[0], ends[1])


def _number(text: str) -> float | None:
    """The number, `None` for an open end, NaN (which is in no range) for anything else."""
    if not text:
        return None
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _policy(raw: RawTerm) -> Term:
    return Term("policy", (raw.values[0].text,), column=raw.values[0].column)


def _sort(raw: RawTerm) -> Sort:
    value = raw.values[0]
    key = value.text.removeprefix("-").lower()
    if key not in SORT_KEYS:
        raise _bad_value(value, f"cannot sort by {key!r}", suggestion(key, SORT_KEYS))
    return Sort(key, descending=value.text.startswith("-"))


def _limit(raw: RawTerm) -> int:
    value = raw.values[0]
    if not _LIMIT.fullmatch(value.text) or int(value.text) > MAX_LIMIT:
        raise _bad_value(value, f"{value.text!r} is no limit", f"give a whole number from 1 to {MAX_LIMIT:,}")
    return int(value.text)


def _bad_value(value: RawValue, message: str, hint: str) -> QueryError:
    return QueryError(message, column=value.column, length=len(value.text), code="query_bad_value", hint=hint)

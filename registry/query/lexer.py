r"""Split a query into raw terms with their columns.

query = { space | term }
term  = [ "-" ] [ field ":" ] value { "," value }        no space inside; only a field takes a list
value = bare | '"' { character | '\"' | '\\' } '"'
bare  = one or more characters other than space, '"', ','; in a free word also no ':'

"""

from __future__ import annotations

import re
from dataclasses import dataclass

from registry.query.errors import QueryError

MAX_LENGTH = 1_000
MAX_TERMS = 64
_NO_TEXT = re.compile("[\ud800-\udfff]")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?=:)")
_ENDS_BARE = frozenset('",')


@dataclass(frozen=True, slots=True)
class RawValue:
    """One value as written, and the 1-based column where it starts."""

    text: str
    column: int
    quoted: bool


@dataclass(frozen=True, slots=True)
class RawTerm:
    """``field`` is empty for a free word. ``column`` is where the term starts, its minus included."""

    negated: bool
    field: str
    values: tuple[RawValue, ...]
    column: int
    field_column: int


def split(text: str) -> list[RawTerm]:
    """The raw terms of a query, in order.

    Raises:
        QueryError: the query is too long, or a quote or a value is not finished.
    """
    if len(text) > MAX_LENGTH:
        raise QueryError(
            f"the query has {len(text):,} characters; at most {MAX_LENGTH:,} are allowed",
            column=MAX_LENGTH + 1,
            code="query_too_long",
            hint="save parts of it as a task set and use set:NAME",
        )
    if "\0" in text:
        # Neither database can look for it.
        raise QueryError("the query holds a NUL character", column=text.index("\0") + 1, hint="leave it out")
    if half := _NO_TEXT.search(text):
        # A byte of a command line that is no text in this locale.
        raise QueryError("here is a character that is no text", column=half.start() + 1, hint="write it in UTF-8")
    terms: list[RawTerm] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        term, at = _term(text, at)
        terms.append(term)
        if len(terms) > MAX_TERMS:
            raise QueryError(f"more than {MAX_TERMS} terms", column=term.column, code="query_too_long")
    return terms


def _term(text: str, start: int) -> tuple[RawTerm, int]:
    at = start
    negated = text[at] == "-"
    if negated:
        at += 1
    name = _FIELD.match(text, at)
    field_column = at + 1
    field = ""
    if name is not None:
        field = name.group().lower()
        at = name.end() + 1
    values = []
    while True:
        value, at = _value(text, at, field)
        values.append(value)
        if at < len(text) and text[at] == "," and field:
            at += 1
            continue
        break
    if at < len(text) and not text[at].isspace():
        raise QueryError(f"{text[at]!r} cannot stand here", column=at + 1, hint="put a space between terms")
    return RawTerm(negated, field, tuple(values), start + 1, field_column), at


def _value(text: str, start: int, field: str) -> tuple[RawValue, int]:
    if start < len(text) and text[start] == '"':
        return _quoted(text, start)
    at = start
    while at < len(text) and not text[at].isspace() and text[at] not in _ENDS_BARE and (field or text[at] != ":"):
        at += 1
    if at == start:
        what = f"{field}: has no value" if field else "a term is empty"
        raise QueryError(what, column=start + 1, hint='write a value, or "..." for text with other characters')
    return RawValue(text[start:at], start + 1, quoted=False), at


def _quoted(text: str, start: int) -> tuple[RawValue, int]:
    out = []
    at = start + 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        out.append(text[at])
        at += 1
    if at >= len(text):
        raise QueryError("the quote is not closed", column=start + 1, length=at - start, hint='end it with "')
    if not out:
        raise QueryError("the quotes hold nothing", column=start + 1, length=2, hint="leave the term out")
    return RawValue("".join(out), start + 1, quoted=True), at + 1

"""What is wrong with a task directory: file, field, value, and what was probably meant.

Problems are collected, never raised one by one, so that one run shows an author everything. An ``error`` keeps the task
out; a ``warning`` is said and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from envsdk.errors import SpecError
from envsdk.frozen import Frozen
from envsdk.spec.tables import fields_at
from envsdk.suggest import did_you_mean

_SHOWN = 80
_CODES = {
    "missing": "missing_field",
    "literal_error": "bad_value",
    "string_pattern_mismatch": "bad_value",
    "value_error": "bad_value",
    "finite_number": "out_of_range",
}
_ELSEWHERE = {"tags": "tags are the `keywords` of [task]"}
"""Where a field belongs that is often written into a table of ours."""


class Problem(Frozen):
    """One finding.

    Attributes:
        code: stable identifier, listed in ``docs/reference/task-format.md``.
        file: path inside the task directory; empty for the directory itself.
        field: dotted path inside the file, with ``[n]`` for list positions.
        value: what stands there, as text, shortened.
        hint: what to do, with the likeliest intended word where there is one.
    """

    code: str
    message: str
    file: str = ""
    field: str = ""
    value: str = ""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.file, self.field) if part)
        fix = f" ({self.hint})" if self.hint else ""
        return f"{place}: {self.message}{fix}" if place else f"{self.message}{fix}"


def shown(value: Any) -> str:
    """A value as short text for a message."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def dotted(location: Sequence[str | int]) -> str:
    """``("steps", 0, "agent")`` as ``steps[0].agent``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def from_validation(
    error: ValidationError, *, file: str, prefix: Sequence[str | int] = (), model: type[BaseModel] | None = None
) -> list[Problem]:
    """Every finding of a pydantic validation as problems of one file.

    With the ``model`` that refused the file, a field that it does not know is told with the names that it knows.
    """
    return [_from_detail(detail, file, prefix, model) for detail in error.errors(include_url=False)]


def _from_detail(detail: Any, file: str, prefix: Sequence[str | int], model: type[BaseModel] | None) -> Problem:
    kind, field = str(detail["type"]), dotted((*prefix, *detail["loc"]))
    value = shown(detail["input"])
    if kind == "extra_forbidden":
        return _unknown(detail["loc"], model, file=file, field=field, value=value)
    code = _CODES.get(kind) or ("wrong_type" if kind.endswith(("_type", "_parsing")) else "out_of_range")
    hint = ""
    if kind == "literal_error" and isinstance(detail["input"], str):
        hint = did_you_mean(detail["input"], _quoted(str(detail["ctx"]["expected"])), cutoff=0.5)
    message = str(detail["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:] + ("" if code == "missing_field" else f", found {value!r}")
    return Problem(code=code, message=message, file=file, field=field, value=value, hint=hint)


def _unknown(
    place: Sequence[str | int], model: type[BaseModel] | None, *, file: str, field: str, value: str
) -> Problem:
    *table, word = place
    known = frozenset() if model is None else fields_at(model, table)
    hint = _ELSEWHERE.get(str(word)) or did_you_mean(str(word), known)
    if known and not hint:
        hint = f"known are {', '.join(sorted(known))}"
    return Problem(
        code="unknown_field", message=f"unknown field {word!r}", file=file, field=field, value=value, hint=hint
    )


def _quoted(expected: str) -> list[str]:
    return expected.split("'")[1::2]


def spec_error(root: Path, problems: Sequence[Problem]) -> SpecError:
    """The error that reports every problem of one directory; the first names its code."""
    first, count = problems[0], len(problems)
    lines = "".join(f"\n  {problem}" for problem in problems) if count > 1 else f" {first}"
    head = f"{count} problems:" if count > 1 else "not a valid task:"
    return SpecError(
        f"{head}{lines}",
        code=first.code,
        where=str(root),
        problems=tuple({key: str(value) for key, value in problem.model_dump().items()} for problem in problems),
    )

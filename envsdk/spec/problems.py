"""What is wrong with a task directory: file, field, value, and what was probably meant.

Problems are collected, never raised one by one, so that one run shows an author everything. An ``error`` keeps the task
out; a ``warning`` is said and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from envsdk.errors import SpecError
from envsdk.frozen import Frozen
from envsdk.suggest import did_you_mean

_SHOWN = 80
_CODES = {
    "extra_forbidden": "unknown_field",
    "missing": "missing_field",
    "literal_error": "bad_value",
    "string_pattern_mismatch": "bad_value",
    "value_error": "bad_value",
    "finite_number": "out_of_range",
}


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


def from_validation(error: ValidationError, *, file: str, prefix: Sequence[str | int] = ()) -> list[Problem]:
    """Every finding of a pydantic validation as problems of one file."""
    return [_from_detail(detail, file, prefix) for detail in error.errors(include_url=False)]


def _from_detail(detail: Any, file: str, prefix: Sequence[str | int]) -> Problem:
    kind = str(detail["type"])
    code = _CODES.get(kind) or ("wrong_type" if kind.endswith(("_type", "_parsing")) else "out_of_range")
    value = shown(detail["input"])
    hint = ""
    if kind == "literal_error" and isinstance(detail["input"], str):
        hint = did_you_mean(detail["input"], _quoted(str(detail["ctx"]["expected"])), cutoff=0.5)
    message = str(detail["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return Problem(
        code=code,
        message=message if code == "missing_field" else f"{message}, found {value!r}",
        file=file,
        field=dotted((*prefix, *detail["loc"])),
        value=value,
        hint=hint,
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

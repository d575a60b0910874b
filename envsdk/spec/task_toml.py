"""The raw tables of ``task.toml``: read, and looked at for what their types alone don't tell."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from envsdk.spec.directory import TaskDirectory
from envsdk.spec.problems import Problem, dotted, shown
from envsdk.spec.tables import NEWEST_SCHEMA, TaskToml, unknown_fields
from envsdk.suggest import did_you_mean

_VERSION = re.compile(r"^(\d+)(?:\.(\d+))?(?:\.\d+)?$")
_KNOWN_BY_OTHERS = {"author_name", "author_email", "difficulty", "category", "tags"}


def parse_toml(directory: TaskDirectory) -> tuple[dict[str, Any] | None, list[Problem]]:
    """The raw tables of ``task.toml``, or `None` and why not."""
    if not directory.is_file("task.toml"):
        return None, [Problem(code="missing_file", file="task.toml", message="is a link", hint="make it a file")]
    text, problems = directory.read_text("task.toml")
    if text is None:
        return None, problems
    try:
        return tomllib.loads(text), problems
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        found = text.splitlines()[int(line[1]) - 1] if line and int(line[1]) <= len(text.splitlines()) else ""
        hint = "TOML writes strings in quotes, true and false in lower case, and each key once"
        return None, [
            *problems,
            Problem(code="bad_toml", file="task.toml", message=f"is not TOML: {error}", value=shown(found), hint=hint),
        ]


def check_toml(raw: Mapping[str, Any]) -> list[Problem]:
    """Findings on the raw tables: schema, unknown fields, numbers that are none."""
    future = _future_schema(raw)
    if future is not None:
        return [future]
    problems = [
        Problem(
            code="out_of_range",
            file="task.toml",
            field=dotted(place),
            message="must be finite",
            value=str(value),
            hint="write a number",
        )
        for place, value in _not_finite(raw, ())
    ]
    for place, known in unknown_fields(TaskToml, raw):
        word = str(place[-1])
        hint = did_you_mean(word, known)
        problems.append(
            Problem(
                code="unknown_field",
                file="task.toml",
                field=dotted(place),
                message=f"unknown field {word!r}",
                value=word,
                hint=hint or ("" if word in _KNOWN_BY_OTHERS else "it is kept but has no effect"),
                severity="error" if hint else "warning",
            )
        )
    return problems


def _future_schema(raw: Mapping[str, Any]) -> Problem | None:
    name = "schema_version" if "schema_version" in raw else "version"
    version = str(raw.get(name, "1.0"))
    match = _VERSION.match(version)
    newest = ".".join(map(str, NEWEST_SCHEMA))
    if match and (int(match[1]), int(match[2] or 0)) <= NEWEST_SCHEMA:
        return None
    return Problem(
        code="future_schema" if match else "bad_value",
        file="task.toml",
        field=name,
        message=f"schema {version!r} is newer than {newest}" if match else f"{version!r} is no schema version",
        value=version,
        hint="upgrade envsdk, or export the task in an older schema" if match else f"write it as {newest!r}",
    )


def _not_finite(value: Any, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _not_finite(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _not_finite(item, (*place, number))

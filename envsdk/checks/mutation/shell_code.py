"""Small slips in a shell script: a line dropped, a part of a pipe dropped, a number off by one, another test."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_MUTANTS = 8
_TESTS = {"-lt": "-le", "-le": "-lt", "-gt": "-ge", "-ge": "-gt", "-eq": "-ne", "-ne": "-eq"}
_TEST = re.compile(r"(?<=\s)(-lt|-le|-gt|-ge|-eq|-ne)(?=\s)")
_NUMBER = re.compile(r"(?<![\w.$/-])\d+(?![\w./])")
_SETTING = re.compile(r"^\s*(?:#|set\s|cd\s|mkdir\s|export\s|:|$)")


def slips(script: str) -> Iterator[tuple[str, str]]:
    """What was done, and the script that comes of it; at most `MAX_MUTANTS`, spread evenly."""
    made = list(dict.fromkeys(_all_slips(script)))
    step = max(1, len(made) / MAX_MUTANTS)
    yield from (made[int(number * step)] for number in range(min(len(made), MAX_MUTANTS)))


def _all_slips(script: str) -> Iterator[tuple[str, str]]:
    lines = script.splitlines()
    inside = _here_documents(lines)
    steps = [at for at, line in enumerate(lines) if not _SETTING.match(line) and at not in inside]
    for at in steps:
        line = lines[at]
        if len(steps) > 1 and "<<" not in line:
            yield f"line {at + 1} dropped", _with(lines, at, ":")
        for part in _pipe_parts_dropped(line):
            yield f"a part of the pipe in line {at + 1} dropped", _with(lines, at, part)
        if test := _TEST.search(line):
            other = line[: test.start()] + _TESTS[test[0]] + line[test.end() :]
            yield f"another test in line {at + 1}", _with(lines, at, other)
        if number := _NUMBER.search(line):
            other = line[: number.start()] + str(int(number[0]) + 1) + line[number.end() :]
            yield f"a number off by one in line {at + 1}", _with(lines, at, other)


def _here_documents(lines: list[str]) -> set[int]:
    inside: set[int] = set()
    word = ""
    for at, line in enumerate(lines):
        if word:
            inside.add(at)
            word = "" if line.strip() == word else word
        elif here := re.search(r"<<-?\s*['\"]?(\w+)", line):
            word = here[1]
    return inside


def _pipe_parts_dropped(line: str) -> Iterator[str]:
    """The line without one of the inner parts of its pipe; nothing for a line with quotes that hold a bar."""
    if re.search(r"['\"][^'\"]*\|[^'\"]*['\"]", line) or "||" in line:
        return
    parts = line.split("|")
    for at in range(1, len(parts)):
        dropped, redirect = parts[at], ""
        if at == len(parts) - 1 and ">" in dropped:
            redirect = " >" + dropped.split(">", 1)[1]
        yield (
            "|".join(parts[:at]).rstrip() + redirect + ("|" + "|".join(parts[at + 1 :]) if at + 1 < len(parts) else "")
        )


def _with(lines: list[str], at: int, line: str) -> str:
    return "\n".join([*lines[:at], line, *lines[at + 1 :]]) + "\n"

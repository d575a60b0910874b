"""Code blocks of a Markdown page that a reader will type, marked so that a test types them too.

An HTML comment right before a fenced block says what to do with it; a block without one is only shown:

    <!-- run -->                a ``console`` block: lines after ``$ `` are commands, others are among what they print
    <!-- run needs=docker -->   the same, where the machine has it (any marker of the test suite, comma-separated)
    <!-- file tasks.py -->      the block is saved under that name, for the blocks after it
    <!-- run exit=1 -->         the last command is meant to end with this status
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MARK = re.compile(r"^<!--\s*(run|file)\b(.*?)-->\s*$")
_FENCE = re.compile(r"^(`{3,})\s*\{?(\w[\w-]*)?")


@dataclass(frozen=True, slots=True)
class Command:
    """One command, and the lines that the page shows as its output, without white space at their ends."""

    text: str
    printed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One marked block. ``line`` is where its text begins, from 1; ``rest`` is what its mark says after the verb."""

    path: Path
    line: int
    verb: str
    rest: str
    text: str

    @property
    def needs(self) -> tuple[str, ...]:
        found = re.search(r"needs=([\w,]+)", self.rest)
        return tuple(found.group(1).split(",")) if found else ()

    @property
    def status(self) -> int:
        found = re.search(r"exit=(\d+)", self.rest)
        return int(found.group(1)) if found else 0

    def commands(self) -> list[Command]:
        """The shell commands of a console block, continued lines joined, each with what is shown below it."""
        found: list[tuple[str, list[str]]] = []
        going_on = False
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif going_on:
                found[-1] = (found[-1][0] + "\n" + line.removeprefix("> "), [])
            elif found and line.strip():
                found[-1][1].append(line.strip())
            going_on = bool(found) and line.endswith("\\") and (line.startswith("$ ") or going_on)
        return [Command(text, tuple(printed)) for text, printed in found]


def marked_blocks(path: Path) -> Iterator[Block]:
    """Every marked block of a page, in order. Raises ValueError for a mark that no block follows."""
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        mark = _MARK.match(lines[number])
        number += 1
        if mark is None:
            continue
        fence = _FENCE.match(lines[number]) if number < len(lines) else None
        if fence is None:
            raise ValueError(f"{path}:{number}: a mark that no fenced block follows")
        start = number + 1
        number = next((n for n in range(start, len(lines)) if lines[n].strip() == fence.group(1)), len(lines))
        yield Block(path, start + 1, mark.group(1), mark.group(2).strip(), "\n".join(lines[start:number]) + "\n")

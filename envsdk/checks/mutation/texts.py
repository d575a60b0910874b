"""Wrong texts: constants, other numbers, lines dropped, added, exchanged, all candidates at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.mutation.wording import Wording

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_CONSTANTS = ("0", "1", "x")


def mutants(path: str, content: bytes, wording: Wording, inputs: Iterable[str]) -> Iterator[Mutant]:
    """Wrong variations of one text file of the submission.

    Args:
        path: where it lies.
        content: what the oracle wrote.
        wording: what the instruction demands.
        inputs: texts of the files that the task gives, for candidates.
    """
    text = content.decode("utf-8", "replace")
    made = dict(_variations(text, wording, inputs))
    for name, other in made.items():
        if other.split() != text.split():
            yield Mutant(f"{path}: {name}", {path: other.encode()})


def _variations(text: str, wording: Wording, inputs: Iterable[str]) -> Iterator[tuple[str, str]]:
    bare = text.strip()
    lines = text.splitlines(keepends=True)
    if _NUMBER.fullmatch(bare):
        yield from _other_numbers(bare, wording)
        yield "the text x", "x\n"
    else:
        yield from ((f"the constant {constant}", f"{constant}\n") for constant in _CONSTANTS)
        if not wording.tolerance and (number := _NUMBER.search(text)):
            yield "its first number off by one", text[: number.start()] + _plus(number[0], 1) + text[number.end() :]
    if len(lines) > 1:
        yield "its last line dropped", "".join(lines[:-1])
        yield "only its first line", lines[0]
    if len(lines) > 1 and wording.in_order:
        yield "its lines in reverse", "".join(line if line.endswith("\n") else line + "\n" for line in reversed(lines))
    if not wording.contains:
        yield "one line too many", (text if text.endswith("\n") else text + "\n") + "x\n"
        yield from _all_candidates(lines, inputs)


def _other_numbers(bare: str, wording: Wording) -> Iterator[tuple[str, str]]:
    value = Decimal(bare)
    far = 10 * max(Decimal(1), abs(value))
    yield "the number far off", f"{_like(bare, value + far)}\n"
    yield "the number far off below", f"{_like(bare, value - far)}\n"
    if wording.tolerance:
        return
    yield "the constant 0", "0\n"
    yield "twice the number", f"{_like(bare, 2 * value)}\n"
    yield "the number with the other sign", f"{_like(bare, -value)}\n"
    yield "the number plus 1", f"{_like(bare, value + 1)}\n"
    yield "the number minus 1", f"{_like(bare, value - 1)}\n"


def _all_candidates(lines: list[str], inputs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where the answer picks lines of an input: all of them."""
    picked = {line.strip() for line in lines if line.strip()}
    for given in inputs:
        candidates = [line for line in given.splitlines() if line.strip()]
        if picked and picked < {line.strip() for line in candidates}:
            yield "all candidates listed", "".join(f"{line}\n" for line in candidates)
            return


def _plus(number: str, step: int) -> str:
    return _like(number, Decimal(number) + step)


def _like(model: str, value: Decimal) -> str:
    places = len(model.partition(".")[2])
    return f"{value:.{places}f}"

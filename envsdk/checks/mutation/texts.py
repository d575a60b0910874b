"""Wrong texts: constants, other numbers, lines dropped, added, exchanged, all candidates at once."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from envsdk.checks.mutation import json_values, numbers, tables
from envsdk.checks.mutation.mutant import Mutant
from envsdk.checks.mutation.wording import Wording
from envsdk.checks.unpacking import text_of

_CONSTANTS = ("0", "1", "x")
_LETTERS = re.compile(r"[A-Za-z]{3}")
_WORDS = re.compile(r"[A-Za-z]{2,}")
_QUOTED = re.compile(r"`([^`]*)`")
_OPAQUE = re.compile(r"[a-z0-9][A-Z]\S*")
_ADDRESS = re.compile(r"\d+(?:\.\d+){3}")
_NAME = re.compile(r"[A-Za-z][\w./-]*[A-Za-z]")
_MAX_GIVEN = 20_000
_PATTERN = re.compile(r"\bregular expressions?\b|\bregex", re.IGNORECASE)
_APPLIED = re.compile(
    r"\.(?:ini|cfg|conf|toml|ya?ml|env|properties|css|x?html?|xml|svg|service|tmpl|j2|tex|dot|rules)$"
    r"|(?:^|/)(?:\.\w+|Makefile|Dockerfile|crontab)$"
)
"""Names of texts that a program reads: one that makes nothing of a line more is no worse for it."""
_WHOLE = re.compile(
    r"\bnothing (?:else|more)\b|\bno other\b|\bverbatim\b|\bbytes?\b"
    r"|\bexactly (?:these|this|the (?:following|lines?))\b",
    re.IGNORECASE,
)
_RUN = re.compile(r"\.(?:awk|sed|jq|sql)$")
_MARKUP = re.compile(r"[{}\[\]<>;]")


def mutants(
    path: str, content: bytes, wording: Wording, inputs: Iterable[str], *, instruction: str = "", is_reply: bool = False
) -> Iterator[Mutant]:
    """Wrong variations of one text of the submission.

    Args:
        path: where it lies.
        content: what the oracle wrote.
        wording: what the instruction demands.
        inputs: texts of the files that the task gives, for candidates.
        instruction: names the parts of a structured answer.
        is_reply: it is what somebody said, in which the answer may be looked for, not a file of its own.
    """
    text = text_of(content)
    if text is None:
        yield from (Mutant(f"{path}: the constant {other}", {path: f"{other}\n".encode()}) for other in _CONSTANTS)
        return
    given = list(inputs)
    made = dict(_variations(text, wording, instruction, [] if is_reply else given))
    if not is_reply or wording.alone:
        is_run = _RUN.search(path) is not None or _PATTERN.search(instruction) is not None
        is_read = not _APPLIED.search(path) or _WHOLE.search(instruction) is not None
        made |= dict(_around(text, wording, given, can_grow=is_read and not is_run))
    for name, other in made.items():
        if other.split() != text.split():
            may_be_right = name in numbers.MAY_BE_RIGHT and not wording.counting
            yield Mutant(f"{path}: {name}", {path: other.encode()}, may_be_right=may_be_right)


def _variations(text: str, wording: Wording, instruction: str, inputs: list[str]) -> Iterator[tuple[str, str]]:
    bare = text.strip()
    is_number = numbers.NUMBER.fullmatch(bare) is not None
    if is_number and not wording.free:
        yield from numbers.others(bare, wording)
        yield "the text x", "x\n"
        return
    yield from ((f"the constant {constant}", f"{constant}\n") for constant in _CONSTANTS)
    if _PATTERN.search(instruction):
        yield "a pattern for everything", ".*\n"
    if wording.free or is_number:
        return
    if _LETTERS.search(text) and not numbers.NUMBER.search(text):  # a number may be all that is looked for
        yield "other letters in their places", codecs.encode(text, "rot13")
    if (wording.case or (_is_copied(text, instruction, inputs) and not wording.any_case)) and text.swapcase() != text:
        yield "capital letters as small ones and the reverse", text.swapcase()
    if (value := json_values.parsed(text)) is not None:
        yield from json_values.others(value, wording, instruction, "\n".join(inputs))
    elif not wording.tolerance and (number := numbers.NUMBER.search(text)):
        yield from _exchanged(text, wording)
        yield "its first number off by one", text[: number.start()] + numbers.plus(number[0], 1) + text[number.end() :]
        yield "every number off by one", numbers.every_plus_one(text)
    yield from _by_line(text, wording)
    if value is None:
        yield from tables.others(text, "\n".join(inputs))


def _exchanged(text: str, wording: Wording) -> Iterator[tuple[str, str]]:
    """The first and the last number each in the other's place; nothing where only the order of equals would change."""
    found = list(numbers.NUMBER.finditer(text))
    if len(found) < 2 or wording.any_order or wording.contains:
        return
    first, last = found[0], found[-1]
    between = text[first.end() : last.start()]
    other = f"{text[: first.start()]}{last[0]}{between}{first[0]}{text[last.end() :]}"
    if "\n" in between and _members(other) != _members(text):
        yield "its first and its last number exchanged", other


def _members(text: str) -> list[list[str]]:
    """Words of each line, in no order, the lines in none either."""
    return sorted(sorted(line.split()) for line in text.splitlines())


def _is_opaque(text: str, inputs: list[str]) -> bool:
    """Each line is a word of an input, and one of them no word of a language: capitals stand inside it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    known = {word for given in inputs for word in re.split(r"[\s,;|\"']+", given)}
    return bool(lines) and set(lines) <= known and any(_OPAQUE.search(line) for line in lines)


def _is_copied(text: str, instruction: str, inputs: list[str]) -> bool:
    """It is data, in which no letter is like another.

    Every line of it stands in one of the inputs; or it is a table, of which every word stands in them or is quoted.
    """
    lines = {line.strip() for line in text.splitlines() if line.strip()}
    if _is_opaque(text, inputs):
        return True
    if bool(lines) and any(lines <= {line.strip() for line in given.splitlines()} for given in inputs):
        return True
    known = set(_WORDS.findall("\n".join([*inputs, *_QUOTED.findall(instruction)])))
    return tables.delimiter(text) is not None and set(_WORDS.findall(text)) <= known


def _by_line(text: str, wording: Wording) -> Iterator[tuple[str, str]]:
    lines = text.splitlines(keepends=True)
    words = text.split()
    if len(lines) > 1:
        yield "its last line dropped", "".join(lines[:-1])
        yield "only its first line", lines[0]
    if len(lines) > 1 and wording.in_order:
        yield "its lines in reverse", "".join(line if line.endswith("\n") else line + "\n" for line in reversed(lines))
        if len(lines) > 3:  # the first may be a head, and lines that are alike in what sorts them may stand either way
            first, *between, last = lines[1:]
            yield (
                "its second and its last line exchanged",
                "".join([lines[0], last.rstrip("\n") + "\n", *between, first]),
            )
    if len(lines) > 1 and not _MARKUP.search(text):
        yield "its lines without those that stood before", "".join(_distinct(lines))
        yield "its lines run together", "".join(line.strip() for line in lines) + "\n"
    if len(lines) == 1 and len(words) == 1 and _LETTERS.search(text) and not wording.any_order:
        yield "its letters in reverse", words[0][::-1] + "\n"
    if len(lines) == 1 and len(words) > 1 and wording.in_order:
        yield "its words in reverse", " ".join(reversed(words)) + "\n"


def _distinct(lines: list[str]) -> list[str]:
    """Each line once, but for empty ones: they part what stands between them."""
    return [line for number, line in enumerate(lines) if not line.strip() or line not in lines[:number]]


def _around(text: str, wording: Wording, inputs: Iterable[str], *, can_grow: bool) -> Iterator[tuple[str, str]]:
    """The right answer, with what makes it wrong beside it."""
    if wording.contains:
        return
    bare, lines = text.strip(), text.splitlines()
    is_alone = wording.alone or wording.exact
    is_list = len(lines) > 1 or not numbers.NUMBER.search(text)  # a number may be read out of a sentence
    if can_grow and (is_alone or is_list):
        yield "one line too many", (text if text.endswith("\n") else text + "\n") + "x\n"
    if is_alone and can_grow and len(lines) == 1 and not wording.free:
        yield "denied", f"not {bare}\n"
    if len(lines) == 1 and (_ADDRESS.fullmatch(bare) or _NAME.fullmatch(bare)) and not wording.free:
        yield "a sign more behind it", f"{bare}{'7' if bare[-1].isdigit() else 's'}\n"
    given = list(inputs)
    yield from _all_candidates(lines, given)
    yield from _the_input(text, wording, given)


def _the_input(text: str, wording: Wording, inputs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What was given, as it was given: of a table another order is no other content where none was asked for."""
    if wording.any_order or wording.free or numbers.NUMBER.fullmatch(text.strip()):
        return
    for given in inputs:
        is_it = (
            len(given) < _MAX_GIVEN and len(given.splitlines()) > 1 and sorted(given.split()) != sorted(text.split())
        )
        moved = wording.in_order or (len(text.splitlines()) > 1 and _members(given) != _members(text))
        if (is_it and _speaks_of(text, given)) or (moved and sorted(given.split()) == sorted(text.split())):
            yield "the input as it was given", given


def _speaks_of(text: str, given: str) -> bool:
    """A word of the one stands in the other."""
    return bool(set(text.split()) & set(given.split()))


def _all_candidates(lines: list[str], inputs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where the answer picks lines of an input: all of them."""
    picked = {line.strip() for line in lines if line.strip()}
    for given in inputs:
        candidates = [line for line in given.splitlines() if line.strip()]
        if picked and picked < {line.strip() for line in candidates}:
            yield "all candidates listed", "".join(f"{line}\n" for line in candidates)
            return

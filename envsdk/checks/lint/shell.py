"""Shell scripts as far as rules need them: commands with their line numbers, without comments and here-documents.

A text in quotes belongs to its command, over however many lines it goes: what it says is not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HERE = re.compile(r"<<-?\s*(?P<quote>['\"]?)(?P<word>\w+)(?P=quote)")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")


@dataclass(frozen=True, slots=True)
class Line:
    """One logical line: its number, its text, and the text with the inside of quotes blanked."""

    number: int
    text: str
    bare: str


def commands(script: str) -> Iterator[Line]:
    """Logical lines that hold commands. Continued lines are joined; bodies of here-documents are left out."""
    rows = script.splitlines()
    lines = iter(enumerate(rows, 1))
    for number, raw in lines:
        text = raw
        while text.endswith("\\"):
            _, more = next(lines, (0, ""))
            text = text[:-1] + more
        for _ in range(_more_lines(text, rows[number:])):
            text += "\n" + next(lines, (0, ""))[1]
        bare = _QUOTED.sub(lambda match: match[0][0] + " " * (len(match[0]) - 2) + match[0][-1], text)
        comment = _COMMENT.search(bare)
        if comment:
            text, bare = text[: comment.start()], bare[: comment.start()]
        for here in _HERE.finditer(text):
            _skip_until(lines, here["word"])
        if bare.strip():
            yield Line(number, text.strip(), bare.strip())


def _more_lines(text: str, following: list[str]) -> int:
    """How many of the following lines a quote that is open at the end of this one takes in; 0 where it never closes."""
    if _HERE.search(text) or not _is_open(text):
        return 0
    for count, line in enumerate(following, 1):
        text += "\n" + line
        if not _is_open(text):
            return count
    return 0


def _is_open(text: str) -> bool:
    """A quote is open at the end; what a comment says opens none."""
    mark, at = "", 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and mark != "'":
            at += 1
        elif mark:
            mark = "" if sign == mark[-1] else mark
        elif sign in "'\"":
            mark = "$'" if text[at - 1 : at + 1] == "$'" else sign
        elif sign == "#" and (at == 0 or text[at - 1].isspace()):
            at = text.find("\n", at)
            if at < 0:
                return False
        at += 1
    return bool(mark)


def _skip_until(lines: Iterator[tuple[int, str]], word: str) -> None:
    for _, line in lines:
        if line.strip() == word:
            return


def is_shell(name: str, text: str) -> bool:
    """The file is a shell script, by its name or first line."""
    first = text.splitlines()[0] if text else ""
    return name.endswith(".sh") or bool(re.match(r"#!.*\b(?:sh|bash|dash|ash|zsh)\b", first))

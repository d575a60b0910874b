"""Here-documents of a Dockerfile, written out for builders that know none.

``RUN <<END`` and ``RUN cat > f <<END`` become the JSON form, with the document inside the script; ``COPY <<END f``
copies a file that is added to the build context. They are read as BuildKit reads them. All else stays as it is, and so
do the lines' numbers.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from envsdk.errors import SandboxError
from envsdk.sandboxes.dockerfile import assignments, expand, joined

FOLDER = ".envsdk-here"
"""Where the files of COPY lie in the build context."""
_SHELL = ["/bin/sh", "-c"]
_FLAGS = re.compile(r"(?:--\S+\s+)*")
# A marker is a word of its own; what is quoted or escaped is none.
_MARKER = re.compile(
    r"(?<!\S)\d*<<(?P<tabs>-?)(?P<quote>[\"']?)(?P<name>[^\s<>\"']+)(?P=quote)(?!\S)"
    r"|\"(?:\\.|[^\"\\])*\"|'[^']*'|\\."
)


@dataclass(frozen=True, slots=True)
class PlainDockerfile:
    """A Dockerfile without here-documents, and the files that its build context needs besides: path -> content."""

    text: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class _Document:
    name: str
    lines: tuple[str, ...]
    without_tabs: bool
    is_quoted: bool

    @property
    def text(self) -> str:
        lines = [line.lstrip("\t") if self.without_tabs else line for line in self.lines]
        return "".join(f"{line}\n" for line in lines)


def plain(dockerfile: str) -> PlainDockerfile:
    """Write the here-documents out. Raises `SandboxError` (``dockerfile_invalid``) for one without an end."""
    if "<<" not in dockerfile:
        return PlainDockerfile(dockerfile, {})
    lines = dockerfile.split("\n")
    written: list[str] = []
    files: dict[str, bytes] = {}
    values: dict[str, str] = {}
    shell, at = _SHELL, 0
    while at < len(lines):
        first = at
        text, at = joined(lines, at)
        word, _, rest = text.partition(" ")
        word = word.upper()
        documents: list[_Document] = []
        if word in {"RUN", "COPY", "ADD"}:
            documents, at = _documents(rest, lines, at)
        elif word in {"ENV", "ARG"}:
            with contextlib.suppress(ValueError):  # an open quote: the builder says so, with its line
                values |= assignments(rest, values)
        elif word in {"SHELL", "FROM"}:
            shell = _shell(rest) if word == "SHELL" else _SHELL
        if not documents:
            written += lines[first:at]
            continue
        if word == "RUN":
            flags = _FLAGS.match(rest.lstrip())
            assert flags is not None
            script = _script(rest.lstrip()[flags.end() :].strip(), documents)
            written.append(f"RUN {flags[0]}{json.dumps([*shell, script])}")
        else:
            places = [f"{FOLDER}/{first + 1}/{document.name}" for document in documents]
            files |= {place: _content(document, values) for place, document in zip(places, documents, strict=True)}
            written.append(f"{word} {_named(rest, places)}")
        written += [""] * (at - first - 1)
    return PlainDockerfile("\n".join(written), files)


def _documents(rest: str, lines: list[str], at: int) -> tuple[list[_Document], int]:
    """The documents that an instruction names, which begin at a line, and the number of the line after them."""
    found = []
    for marker in _MARKER.finditer(rest):
        if marker["name"] is None:
            continue
        began, block = at, []
        while at < len(lines) and _bare(lines[at], marker) != marker["name"]:
            block.append(lines[at].removesuffix("\r"))
            at += 1
        if at == len(lines):
            raise SandboxError(
                f"line {began}: the here-document {marker['name']} has no end",
                code="dockerfile_invalid",
                hint=f"close it with a line that is {marker['name']} and nothing else",
            )
        at += 1
        found.append(_Document(marker["name"], tuple(block), bool(marker["tabs"]), bool(marker["quote"])))
    return found, at


def _bare(line: str, marker: re.Match[str]) -> str:
    line = line.removesuffix("\r")
    return line.lstrip("\t") if marker["tabs"] else line


def _script(command: str, documents: list[_Document]) -> str:
    """What the shell is given: a document alone is the script, another stays a document of the command."""
    document = documents[0]
    alone = _MARKER.fullmatch(command)
    if alone is None:
        ends = [line for one in documents for line in (*one.lines, one.name)]
        return "\n".join([command, *ends, ""])
    if not document.text.startswith("#!"):
        return document.text
    keep = f'f=$(mktemp) && cat > "$f" <<\'{document.name}\' && chmod +x "$f" && "$f"\n'
    return f'{keep}{document.text}{document.name}\ns=$?; rm -f "$f"; exit $s\n'


def _content(document: _Document, values: Mapping[str, str]) -> bytes:
    return (document.text if document.is_quoted else expand(document.text, values)).encode()


def _named(rest: str, places: list[str]) -> str:
    left = iter(places)
    return _MARKER.sub(lambda marker: marker[0] if marker["name"] is None else next(left), rest).strip()


def _shell(rest: str) -> list[str]:
    try:
        words = json.loads(rest)
    except ValueError:
        return _SHELL
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else _SHELL

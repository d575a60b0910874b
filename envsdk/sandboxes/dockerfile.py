"""Dockerfiles as far as sandboxes without an engine build them: one stage of the common instructions.

FROM, ARG, ENV, RUN, COPY, ADD of local files, WORKDIR, USER, CMD, ENTRYPOINT; EXPOSE, LABEL, STOPSIGNAL, VOLUME,
MAINTAINER and HEALTHCHECK say nothing about the file system and are read past. ONBUILD and SHELL, a second stage, and a
URL in ADD raise `SandboxError` with code ``dockerfile_unsupported``, naming the line. Here-documents are written out
before (`envsdk.sandboxes.here_documents`).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from envsdk.errors import SandboxError
from envsdk.suggest import did_you_mean

_PASSED_OVER = {"EXPOSE", "LABEL", "STOPSIGNAL", "VOLUME", "MAINTAINER", "HEALTHCHECK"}
_KNOWN = {"FROM", "ARG", "ENV", "RUN", "COPY", "ADD", "WORKDIR", "USER", "CMD", "ENTRYPOINT"}
_ENGINES_ALONE = {"ONBUILD", "SHELL"}
_VALUE = re.compile(r"\\(.)|\$\{(\w+)(?::([-+])([^}]*))?\}|\$(\w+)")


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction; ``text`` is what follows the word, lines joined."""

    line: int
    word: str
    text: str


def parse(dockerfile: str) -> list[Step]:
    """The instructions in order. Raises `SandboxError` (``dockerfile_unsupported``, ``dockerfile_invalid``)."""
    steps: list[Step] = []
    lines = dockerfile.split("\n")
    at = 0
    while at < len(lines):
        first = at
        text, at = joined(lines, at)
        word, _, rest = text.partition(" ")
        word = word.upper()
        if not text or text.startswith("#") or word in _PASSED_OVER:
            continue
        if word in _ENGINES_ALONE:
            raise _unsupported(first, f"instruction {word}")
        if word not in _KNOWN:
            raise SandboxError(
                f"line {first + 1}: {word} is no Dockerfile instruction",
                code="dockerfile_invalid",
                hint=did_you_mean(word, _KNOWN | _ENGINES_ALONE | _PASSED_OVER),
            )
        if word == "FROM" and any(step.word == "FROM" for step in steps):
            raise _unsupported(first, "a second stage")
        steps.append(Step(first + 1, word, rest.strip()))
    if not any(step.word == "FROM" for step in steps):
        raise SandboxError(
            "the Dockerfile has no FROM", code="dockerfile_invalid", hint="begin it with FROM and an image"
        )
    return steps


def joined(lines: list[str], at: int) -> tuple[str, int]:
    """The instruction that starts at a line, continued lines joined to one, and the number of the line after it."""
    text = lines[at].strip()
    at += 1
    while text.endswith("\\") and not text.startswith("#") and at < len(lines):
        following = lines[at].rstrip()
        at += 1
        if following and not following.lstrip().startswith("#"):
            text = text[:-1] + following
    return text, at


def _unsupported(line: int, what: str) -> SandboxError:
    return SandboxError(
        f"line {line + 1}: {what} cannot be built without a Docker engine",
        code="dockerfile_unsupported",
        hint="start an engine, or keep to FROM ARG ENV RUN COPY ADD WORKDIR USER CMD ENTRYPOINT in one stage",
    )


def expand(text: str, values: Mapping[str, str]) -> str:
    """``$NAME``, ``${NAME}``, ``${NAME:-default}`` and ``${NAME:+other}`` filled in, as Docker does outside RUN."""

    def fill(found: re.Match[str]) -> str:
        if found[1]:
            return found[1] if found[1] == "$" else found[0]
        value = values.get(found[2] or found[5], "")
        if found[3] == "-":
            return value or found[4]
        if found[3] == "+":
            return found[4] if value else ""
        return value

    return _VALUE.sub(fill, text)


def assignments(text: str, values: Mapping[str, str]) -> dict[str, str]:
    """``NAME=value ...`` or the older ``NAME value`` of ENV and ARG, quotes removed, values filled in."""
    words = shlex.split(text)
    if words and "=" not in words[0]:
        return {words[0]: expand(" ".join(words[1:]), values)}
    return {name: expand(value, values) for name, _, value in (word.partition("=") for word in words)}


def command_words(text: str) -> list[str]:
    """CMD, ENTRYPOINT or RUN as an argument list: the JSON form, or the shell's."""
    if text.startswith("["):
        try:
            words = json.loads(text)
        except ValueError:
            words = None
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return words
    return ["/bin/sh", "-c", text]


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY or ADD: sources relative to the context, a target, and who owns what is written."""

    sources: tuple[str, ...]
    target: str
    owner: str = "root"
    mode: int | None = None


def copy_of(step: Step, values: Mapping[str, str]) -> Copy:
    """Parse a COPY or ADD. Raises `SandboxError` for stages, URLs and flags that are not known."""
    text = expand(step.text, values)
    owner, mode = "root", None
    while match := re.match(r"--(\w+)(?:=(\S+))?\s+", text):
        text = text[match.end() :]
        if match[1] == "chown":
            owner = match[2]
        elif match[1] == "chmod":
            mode = int(match[2], 8)
        elif match[1] != "link":
            raise _unsupported(step.line - 1, f"{step.word} --{match[1]}")
    words = json.loads(text) if text.startswith("[") else shlex.split(text)
    if len(words) < 2:
        raise SandboxError(f"line {step.line}: {step.word} needs a source and a target", code="dockerfile_invalid")
    if any("://" in word for word in words[:-1]):
        raise _unsupported(step.line - 1, f"{step.word} of a URL")
    return Copy(tuple(words[:-1]), words[-1], owner, mode)

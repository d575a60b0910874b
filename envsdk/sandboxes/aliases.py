"""Which local image stands for a wanted one, so that machines without a registry work.

``ENVSDK_IMAGE_ALIASES`` is ``wanted=local,...``; a wanted name may end in ``*``. Aliases from it bind always; the
built-in ones (`FALLBACKS`, tried in order) only where the wanted image is neither here nor to be pulled. What was used
is recorded with the episode.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping
from typing import TypeVar

from envsdk.errors import UsageError
from envsdk.home import BASE_IMAGE

VARIABLE = "ENVSDK_IMAGE_ALIASES"
PLAIN_IMAGE = "envsdk-debian:bookworm"
"""A Debian with Python and nothing of ours: what stands in for public images must not bring users or folders along."""

FALLBACKS: Mapping[str, tuple[str, ...]] = {
    "python:3*": (PLAIN_IMAGE, BASE_IMAGE),
    "debian:bookworm*": (PLAIN_IMAGE, BASE_IMAGE),
    "debian:12*": (PLAIN_IMAGE, BASE_IMAGE),
}
T = TypeVar("T")
_FROM = re.compile(r"^(\s*FROM\s+(?:--\S+\s+)*)(\S+)", re.IGNORECASE)
_ARG = re.compile(r"^\s*ARG\s+(\w+)\s*=\s*[\"']?([^\"'\s]+)[\"']?", re.IGNORECASE)
_VALUE = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)")


def from_environment(value: str | None = None) -> dict[str, str]:
    """Aliases of ``ENVSDK_IMAGE_ALIASES``. Raises `UsageError` (``bad_alias``) for an entry without ``=``."""
    text = os.environ.get(VARIABLE, "") if value is None else value
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        wanted, sign, local = (piece.strip() for piece in entry.partition("="))
        if not (sign and wanted and local):
            raise UsageError(f"{VARIABLE} holds {entry!r}", code="bad_alias", hint="write wanted=local,wanted=local")
        found[wanted] = local
    return found


def look_up(wanted: str, aliases: Mapping[str, T]) -> T | None:
    """What stands in the table for a wanted image: an exact entry first, then the longest pattern that fits."""
    plain = wanted.removeprefix("docker.io/library/").removeprefix("docker.io/")
    for name in (wanted, plain):
        if name in aliases:
            return aliases[name]
    fitting = [pattern for pattern in aliases if "*" in pattern and fnmatch.fnmatchcase(plain, pattern)]
    return aliases[max(fitting, key=len)] if fitting else None


def wanted_bases(dockerfile: str) -> list[str]:
    """Images the Dockerfile starts from, in order, ``ARG`` defaults filled in; its own stages and scratch are none."""
    args: dict[str, str] = {}
    stages: set[str] = set()
    found: list[str] = []
    for line in dockerfile.splitlines():
        if default := _ARG.match(line):
            args.setdefault(default[1], default[2])
        elif start := _FROM.match(line):
            name = _filled(start[2], args)
            if name not in stages and name != "scratch" and name not in found:
                found.append(name)
            words = line.split()
            if len(words) >= 2 and words[-2].lower() == "as":
                stages.add(words[-1])
    return found


def rewrite(dockerfile: str, used: Mapping[str, str]) -> str:
    """The Dockerfile with each ``FROM`` of a wanted image replaced by its local one; all else byte for byte."""
    args: dict[str, str] = {}
    lines = dockerfile.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if default := _ARG.match(line):
            args.setdefault(default[1], default[2])
        elif (start := _FROM.match(line)) and (local := used.get(_filled(start[2], args))):
            lines[number] = f"{start[1]}{local}{line[start.end() :]}"
    return "".join(lines)


def _filled(text: str, args: Mapping[str, str]) -> str:
    return _VALUE.sub(lambda found: args.get(found[1] or found[3], found[2] or ""), text)

"""A build context: the files beside a Dockerfile that take part in its build, and their digest.

``.dockerignore`` is honoured. The digest covers paths, executable bits, link targets and bytes, nothing else, so equal
environments have equal digests on every machine.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Context:
    """``files`` are posix paths relative to ``root``, sorted; folders that hold nothing are among them."""

    root: Path
    files: tuple[str, ...]
    dockerfile: str
    digest: str


def read_context(root: Path) -> Context:
    """Read the folder. Raises `OSError` where it holds no Dockerfile."""
    ignored = _ignore_patterns(root)
    files = []
    for folder, names, plain in os.walk(root):
        inside = Path(folder).relative_to(root).as_posix()
        prefix = "" if inside == "." else f"{inside}/"
        for name in [*plain, *(n for n in names if (Path(folder) / n).is_symlink())]:
            relative = f"{prefix}{name}"
            if relative == "Dockerfile" or not _is_ignored(relative, ignored):
                files.append(relative)
        if prefix and not names and not plain:
            files.append(prefix.rstrip("/"))
    files.sort()
    digest = hashlib.sha256()
    for name in files:
        path = Path(root, name)
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            kind, content = "link", os.fsencode(path.readlink())
        elif stat.S_ISDIR(status.st_mode):
            kind, content = "folder", b""
        else:
            kind, content = ("program" if status.st_mode & 0o111 else "file"), path.read_bytes()
        digest.update(f"{kind}\0{name}\0{hashlib.sha256(content).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    text = (root / "Dockerfile").read_text(encoding="utf-8")
    return Context(root, tuple(files), text, digest.hexdigest())


def matching(files: Sequence[str], pattern: str) -> list[str]:
    """What a source of COPY names among a context's files and their folders; the context itself is ``""``."""
    wanted = posixpath.normpath(pattern.lstrip("/"))
    if wanted == ".":
        return [""]
    names = sorted({*files, *(parent for name in files for parent in _parents(name))})
    return [
        name
        for name in names
        if name == wanted or (fnmatch.fnmatchcase(name, wanted) and name.count("/") == wanted.count("/"))
    ]


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _ignore_patterns(root: Path) -> list[tuple[bool, re.Pattern[str]]]:
    """``(is it an exception, what it matches)`` for each line of ``.dockerignore``, in order."""
    try:
        lines = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    wanted = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return [(line.startswith("!"), _pattern(line.removeprefix("!").strip("/"))) for line in wanted]


def _pattern(text: str) -> re.Pattern[str]:
    """``*`` and ``?`` stay within one folder, ``**`` crosses them; a matched folder takes along what is in it."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", text)
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(special.get(part) or re.escape(part) for part in parts) + "(?:/.*)?")


def _is_ignored(path: str, patterns: list[tuple[bool, re.Pattern[str]]]) -> bool:
    verdict = False
    for is_exception, pattern in patterns:
        if pattern.fullmatch(path):
            verdict = not is_exception
    return verdict

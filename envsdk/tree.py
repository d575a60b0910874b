"""What belongs to a tree of files, and what a tree may not hold.

A tree is listed without following a link: one entry for each regular file and each symbolic link, sorted by path as
UTF-8 bytes. Refused, with every finding reported together: ``non_utf8_path``, ``special_file``, ``symlink_escape`` (an
absolute target, or one that leaves the root when followed step by step, through other links too), ``link_cycle``. A
link that dangles inside the tree is fine. Contents are not read here: see `envsdk.digest`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envsdk.errors import SpecError, StoreError

Mode = Literal["100644", "100755", "120000"]
REFUSALS = ("non_utf8_path", "special_file", "symlink_escape", "link_cycle")
"""Codes of what a tree may not hold; where there are several findings the first of these names the error."""

_WHY = {
    "non_utf8_path": "name or link target is not UTF-8",
    "special_file": "is a pipe, socket or device",
    "symlink_escape": "link leaves the tree",
    "link_cycle": "link leads back to itself",
}


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file or link: relative ``path`` with ``/``, ``size`` in bytes, ``target`` only of a link."""

    path: str
    mode: Mode
    size: int
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a tree may not hold: a code of `REFUSALS` and the path, with undecodable bytes escaped."""

    code: str
    path: str


def keep_all(_path: str) -> bool:
    """Ignore nothing."""
    return True


def list_tree(root: Path, *, keep: Callable[[str], bool] = keep_all) -> list[TreeEntry]:
    """Every file and link under ``root``, sorted by path.

    Args:
        root: an existing directory.
        keep: asked for each relative path, a directory's ending in ``/``; what it refuses is not part of the tree.

    Raises:
        SpecError: the tree holds what it may not; ``code`` is one of `REFUSALS`, ``problems`` lists every finding.
        StoreError: a directory cannot be read.
    """
    entries, findings = scan_tree(root, keep=keep)
    if findings:
        raise refusal(root, findings)
    return entries


def scan_tree(root: Path, *, keep: Callable[[str], bool] = keep_all) -> tuple[list[TreeEntry], list[Finding]]:
    """As `list_tree`, but the findings are returned. Entries are complete only where there is none.

    Raises:
        StoreError: a directory cannot be read.
    """
    entries: list[TreeEntry] = []
    findings: list[Finding] = []
    for raw, status in _walk(os.fsencode(root), keep):
        try:
            path = raw.decode("utf-8")
            target = _target(root, raw) if stat.S_ISLNK(status.st_mode) else None
        except UnicodeDecodeError:
            findings.append(Finding("non_utf8_path", raw.decode("utf-8", "backslashreplace")))
            continue
        if target is not None:
            entries.append(TreeEntry(path, "120000", status.st_size, target))
        elif stat.S_ISREG(status.st_mode):
            entries.append(TreeEntry(path, "100755" if status.st_mode & stat.S_IXUSR else "100644", status.st_size))
        else:
            findings.append(Finding("special_file", path))
    entries.sort(key=lambda entry: entry.path.encode())
    findings += check_links({entry.path: entry.target for entry in entries if entry.target is not None})
    return entries, sorted(findings, key=lambda finding: (REFUSALS.index(finding.code), finding.path))


def refusal(root: Path, findings: list[Finding]) -> SpecError:
    """The error that reports ``findings``, which must not be empty."""
    first = findings[0]
    more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    return SpecError(
        f"{first.path}: {_WHY[first.code]}{more}",
        code=first.code,
        where=str(root),
        hint="remove it, or keep it out of the tree",
        problems=tuple({"code": f.code, "file": f.path, "message": _WHY[f.code]} for f in findings),
    )


def why_refused(code: str) -> str:
    """One clause that says what a code of `REFUSALS` means."""
    return _WHY[code]


def _target(root: Path, raw: bytes) -> str:
    return os.readlink(os.fsencode(root) + b"/" + raw).decode("utf-8")  # noqa: PTH115 - bytes, which pathlib has not


def _walk(root: bytes, keep: Callable[[str], bool]) -> Iterator[tuple[bytes, os.stat_result]]:
    pending = [b""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root + b"/" + folder) as listing:
                found = [(folder + entry.name, entry.stat(follow_symlinks=False)) for entry in listing]
        except OSError as error:
            raise StoreError(
                f"cannot list {folder.decode('utf-8', 'backslashreplace') or '.'}: {error.strerror}",
                code="unreadable_tree",
                hint="give this user the right to read every folder of it",
                where=os.fsdecode(root),
            ) from error
        for path, status in found:
            is_folder = stat.S_ISDIR(status.st_mode)
            if not keep(path.decode("utf-8", "surrogateescape") + ("/" if is_folder else "")):
                continue
            if is_folder:
                pending.append(path + b"/")
                # A directory's name is in the path of every file below it; an empty one is no part of a tree.
                continue
            yield path, status


def check_links(links: Mapping[str, str]) -> list[Finding]:
    """Findings for links that leave the tree or lead back to themselves.

    Args:
        links: link path -> target text; every path that is not a key counts as a plain file or directory.
    """
    resolver = _Resolver(links)
    return [Finding(code, path) for path in sorted(links) if (code := resolver.fault(path))]


class _Resolver:
    """Follows links inside a tree that need not exist on disk; each link is followed once, however many lead to it."""

    def __init__(self, links: Mapping[str, str]) -> None:
        self._links = links
        self._done: dict[str, tuple[str, ...] | str] = {}  # where a link ends, or the code of its fault

    def fault(self, link: str) -> str:
        end = self._follow(link)
        return end if isinstance(end, str) else ""

    def _follow(self, link: str) -> tuple[str, ...] | str:
        # An explicit stack: a chain of links may be longer than Python's recursion allows.
        stack = [_Walk.begin(link, self._links[link])]
        active = {link}
        while stack:
            walk = stack[-1]
            end = walk.fault or self._advance(walk)
            if isinstance(end, _Meet):
                if end.link in active:
                    walk.fault = "link_cycle"
                else:
                    stack.append(_Walk.begin(end.link, self._links[end.link]))
                    active.add(end.link)
                continue
            self._done[walk.link] = end
            active.discard(walk.link)
            stack.pop()
        return self._done[link]

    def _advance(self, walk: _Walk) -> tuple[str, ...] | str | _Meet:
        while walk.pending:
            part = walk.pending[-1]
            if part == "..":
                if not walk.here:
                    return "symlink_escape"
                walk.here = walk.here[:-1]
            elif part not in {"", "."}:
                step = (*walk.here, part)
                name = "/".join(step)
                if name in self._links:
                    end = self._done.get(name)
                    if end is None:
                        return _Meet(name)
                    if isinstance(end, str):
                        return end
                    step = end
                walk.here = step
            walk.pending.pop()
        return walk.here


@dataclass(slots=True)
class _Walk:
    """One link on its way: where it has come to, and the components of its target still to go (next one last)."""

    link: str
    here: tuple[str, ...]
    pending: list[str]
    fault: str = ""

    @classmethod
    def begin(cls, link: str, target: str) -> _Walk:
        parent = tuple(link.split("/")[:-1])
        return cls(link, parent, target.split("/")[::-1], "symlink_escape" if target.startswith("/") else "")


@dataclass(frozen=True, slots=True)
class _Meet:
    """The walk stands before another link that must be followed first."""

    link: str

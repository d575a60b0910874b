"""Which members of an archive may be unpacked: every rule about names, kinds and links, and no disk at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from envsdk.errors import UsageError
from envsdk.tree import check_links

MemberKind = Literal["file", "dir", "symlink", "hardlink", "special"]

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one unpacking: bytes of all files together, and members."""

    max_bytes: int = 1 << 30
    max_members: int = 20_000


@dataclass(frozen=True, slots=True)
class Member:
    """One entry as the archive names it; ``size_bytes`` is what its header claims."""

    path: str
    kind: MemberKind
    size_bytes: int = 0
    target: str = ""
    mode: int = 0o644


def refuse(code: str, message: str, path: str) -> UsageError:
    """The error for an archive that is not unpacked."""
    hint = "nothing was unpacked; make the archive anew from a clean folder"
    return UsageError(message, code=code, hint=hint, where=path.encode("utf-8", "backslashreplace").decode())


@dataclass(slots=True)
class Admission:
    """Judges members in the order they come; raises `UsageError` for the first that breaks a rule."""

    limits: Limits
    kinds: dict[str, MemberKind] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    claimed_bytes: int = 0

    def admit(self, member: Member) -> str | None:
        """The member's clean relative path, or `None` for the root itself, which is nothing to unpack."""
        path = clean_path(member.path)
        if path is None:
            return None
        self._parents_are_folders(path)
        self._name_is_free(path, member.kind)
        if member.kind == "special":
            raise refuse("special_file", "a device, pipe or socket cannot be unpacked", path)
        if member.kind == "hardlink" and self.kinds.get(without_dot(member.target)) != "file":
            raise refuse("hardlink_escape", f"hard link to {member.target!r}, which is no earlier file of it", path)
        self.claimed_bytes += member.size_bytes if member.kind == "file" else 0
        if self.claimed_bytes > self.limits.max_bytes:
            raise refuse("expansion_limit", f"more than {self.limits.max_bytes} bytes when unpacked", path)
        self.kinds[path] = member.kind
        self.folders.update(_parents(path))
        if member.kind == "dir":
            self.folders.add(path)
        if member.kind == "symlink":
            self.links[path] = member.target
        return path

    def finish(self) -> None:
        """Judge the whole: how many members, and where its links lead."""
        if len(self.kinds) > self.limits.max_members:
            raise refuse("too_many_members", f"{len(self.kinds)} members, {self.limits.max_members} allowed", "")
        faults = {fault.code: fault.path for fault in reversed(check_links(self.links))}
        if path := faults.get("symlink_escape"):
            raise refuse("symlink_escape", f"link to {self.links[path]!r} leaves the archive", path)
        if path := faults.get("link_cycle"):
            raise refuse("link_cycle", f"link to {self.links[path]!r} leads back to itself", path)

    def _parents_are_folders(self, path: str) -> None:
        for parent in _parents(path):
            if self.kinds.get(parent) == "symlink":
                raise refuse("through_symlink", f"lies below the link {parent!r}", path)
        for parent in _parents(path):
            if self.kinds.get(parent, "dir") != "dir":
                raise refuse("type_conflict", f"lies below the file {parent!r}", path)

    def _name_is_free(self, path: str, kind: MemberKind) -> None:
        if path in self.folders and kind != "dir":
            raise refuse("type_conflict", "is a file here and a folder elsewhere", path)
        if path in self.kinds and (self.kinds[path] == "dir") != (kind == "dir"):
            raise refuse("type_conflict", "is a folder here and a file elsewhere", path)
        if path in self.kinds:
            raise refuse("duplicate_member", "occurs twice", path)


def clean_path(raw: str) -> str | None:
    """A member's name without a leading ``./`` and a final ``/``, or `None` for the root.

    Raises:
        UsageError: the name is bad.
    """
    try:
        raw.encode("utf-8")
    except UnicodeEncodeError:
        raise refuse("non_utf8_path", "a name that is not UTF-8", raw) from None
    path = without_dot(raw)
    if path.startswith("/") or _DRIVE.match(path):
        raise refuse("absolute_path", "an absolute path", raw)
    if raw and path in {"", "."}:
        return None
    parts = path.split("/")
    if "\0" in path or "\\" in path or any(part in {"", "."} for part in parts):
        raise refuse("bad_path", "an empty part, '.', NUL or backslash in a name", raw)
    if ".." in parts:
        raise refuse("path_traversal", "'..' in a name", raw)
    return path


def without_dot(path: str) -> str:
    """The name without one leading ``./`` and one final ``/``."""
    return path.removeprefix("./").removesuffix("/") if path != "/" else path


def _parents(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]

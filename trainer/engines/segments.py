"""The shared memory of an engine, written down beside its sockets, so that it can be removed when all were killed.

vLLM takes segments of shared memory by names of chance (``psm_1a2b3c4d``), and a tracker of Python's removes them where
their process was killed. Where a whole process group is killed, the tracker is too, and they stay. Promised: what
was noted in a folder is removed by `remove_noted`, and nothing else: a segment is known by its name and its inode.
Not promised: what a start took that was killed before its engine was up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

NOTES = "segments"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - shared memory is the point
_MAPPED = re.compile(r"^\S+ \S+ \S+ \S+ (\d+) +/dev/shm/(psm_\w+)$", re.MULTILINE)


def note_segments(folder: Path, pids: Iterable[int]) -> None:
    """Add to ``folder``'s notes the segments that these processes have mapped; those that are gone have none."""
    with (folder / NOTES).open("a", encoding="ascii") as notes:
        notes.writelines(f"{name} {inode}\n" for pid in pids for inode, name in sorted(_mapped(pid)))


def remove_noted(folder: Path, *, root: Path = _SHARED_MEMORY) -> list[Path]:
    """Remove the segments in ``folder``'s notes that are still the same; returns what was removed."""
    try:
        lines = (folder / NOTES).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [path for line in lines if (path := _same(root, *line.partition(" ")[::2])) and _unlinked(path)]


def _mapped(pid: int) -> set[tuple[str, str]]:
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return set(_MAPPED.findall(maps))


def _same(root: Path, name: str, inode: str) -> Path | None:
    if not re.fullmatch(r"psm_\w+", name) or not inode.isdecimal():
        return None  # cut off by a kill
    path = root / name
    try:
        return path if path.lstat().st_ino == int(inode) else None
    except OSError:
        return None


def _unlinked(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:  # another user's, or another process was first
        return False
    return True

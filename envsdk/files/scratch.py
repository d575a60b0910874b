"""Folders for what is needed only while something runs, in the folder for temporary files.

Promised: a folder goes when its user is done with it, and one whose process was killed when the next process here makes
its first. One in use is never removed, whichever process, container or user it belongs to: its maker holds the kernel's
lock on it. Not promised: anything of a kill where no other process follows, or on a file system without locks.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "envsdk-scratch-"
_TRIES = 3


@contextmanager
def scratch(what: str) -> Iterator[Path]:
    """A new folder of this process's own, which ``what`` names in a word; removed at the end with all that is in it."""
    root = Path(tempfile.gettempdir())
    _remove_abandoned_once(root)
    folder, held = _made(root, what)
    try:
        yield folder
    finally:
        _remove(folder)
        if held is not None:
            os.close(held)


def remove_abandoned(root: Path) -> list[Path]:
    """Remove the folders of `scratch` under ``root`` that nobody holds; returns what was removed."""
    gone = []
    for path in root.glob(f"{_PREFIX}*"):
        if (held := _held(path)) is not None:
            _remove(path)
            os.close(held)
            gone.append(path)
    return gone


@functools.cache
def _remove_abandoned_once(root: Path) -> None:
    remove_abandoned(root)


def _made(root: Path, what: str) -> tuple[Path, int | None]:
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{what}-", dir=root))
        held = _held(folder)
        if held is not None and os.fstat(held).st_nlink:
            break
        if held is not None:  # another process found it between its making and its holding
            os.close(held)
            held = None
    return folder, held


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # there are folders in it that nobody may write to, as a task's may be
        for parent, names, _ in os.walk(folder):
            for inner in (Path(parent, name) for name in names):
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)


def _held(folder: Path) -> int | None:
    """A descriptor that holds the folder until it is closed; `None` where another one does, or it cannot be held."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # gone, another user's, or no folder
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened

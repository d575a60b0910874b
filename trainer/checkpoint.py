"""Checkpoints on disk: whole or not there at all.

A checkpoint is a folder ``step-000012`` in which the file ``done.json`` was written last, after everything else was
flushed; it appears under its name by one rename. What a kill leaves behind is never taken for a checkpoint and is
removed by the next `save`. ``done.json`` lists every file with its size, so that a copy that lost some is not taken for
one either.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from envsdk.errors import StoreError

DONE = "done.json"
_NAME = re.compile(r"step-(\d{6,})")


def save(root: Path, step: int, write: Callable[[Path], None], *, keep: int = 2) -> Path:
    """Write a checkpoint of ``step`` and remove all but the newest ``keep``.

    Args:
        root: folder of the run's checkpoints; made where missing.
        step: optimizer steps so far; the number in the folder's name.
        write: writes all files into the folder it is given.
        keep: complete checkpoints that stay, at least 1.

    Raises:
        StoreError: ``checkpoint_failed``: the folder could not be written; the checkpoints before it are untouched.
    """
    final = root / f"step-{step:06d}"
    growing = root / f".growing-{final.name}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for left_by_a_kill in root.glob(".growing-*"):
            shutil.rmtree(left_by_a_kill)
        growing.mkdir()
        write(growing)
        files = sorted(path for path in growing.rglob("*") if path.is_file())
        for path in files:
            _flush(path)
        sizes = {path.relative_to(growing).as_posix(): path.stat().st_size for path in files}
        (growing / DONE).write_text(json.dumps({"step": step, "files": sizes}, indent=1), encoding="utf-8")
        _flush(growing / DONE)
        if final.exists():
            shutil.rmtree(final)
        growing.rename(final)
        _flush(root)
    except OSError as error:
        shutil.rmtree(growing, ignore_errors=True)
        raise StoreError(
            f"the checkpoint of step {step} could not be written: {error}",
            code="checkpoint_failed",
            hint="free some disk space, or move the run's folder; the checkpoint before it is whole",
            where=str(final),
        ) from error
    for old in complete(root)[: -max(keep, 1)]:
        shutil.rmtree(old)
    return final


def complete(root: Path) -> list[Path]:
    """Every whole checkpoint under ``root``, oldest step first."""
    if not root.is_dir():
        return []
    found = [path for path in root.iterdir() if _NAME.fullmatch(path.name) and is_complete(path)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def newest(root: Path) -> Path | None:
    """The newest whole checkpoint, `None` without one."""
    whole = complete(root)
    return whole[-1] if whole else None


def step_of(checkpoint: Path) -> int:
    """The number of steps in a checkpoint's name."""
    return int(checkpoint.name.removeprefix("step-"))


def is_complete(checkpoint: Path) -> bool:
    """Whether the marker is there and every file it names has its size."""
    try:
        done = json.loads((checkpoint / DONE).read_text(encoding="utf-8"))
        return all((checkpoint / name).stat().st_size == size for name, size in done["files"].items())
    except (OSError, ValueError, KeyError, AttributeError):
        return False


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

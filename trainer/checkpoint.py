"""Checkpoints on disk: whole or not there at all.

A checkpoint is a folder ``step-000012`` in which the file ``done.json`` was written last, after everything else was
flushed; it appears under its name by one rename. What a kill leaves behind is never taken for a checkpoint and is
removed by the next `save`. ``done.json`` lists every file with its size and checksum, so that a copy that lost some, or
a disk that changed some, is noticed: `newest` passes such a checkpoint over and says so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

from envsdk.errors import StoreError

DONE = "done.json"
_NAME = re.compile(r"step-(\d{6,})")
KEPT = 2
"""Complete checkpoints that stay, unless a caller says otherwise; one more lies beside them while it grows."""
_CHUNK = 1 << 22
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)


def save(root: Path, step: int, write: Callable[[Path], None], *, keep: int = KEPT) -> Path:
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
        facts = {
            path.relative_to(growing).as_posix(): {"bytes": path.stat().st_size, "crc32": _crc32(path)}
            for path in files
        }
        (growing / DONE).write_text(json.dumps({"step": step, "files": facts}, indent=1), encoding="utf-8")
        _flush(growing / DONE)
        if final.exists():
            shutil.rmtree(final)
        growing.rename(final)
        _flush(root)
    except OSError as error:
        shutil.rmtree(growing, ignore_errors=True)
        before = complete(root)
        left = f"{before[-1].name} is whole, and --resume goes on from it" if before else "there is none before it"
        raise StoreError(
            f"the checkpoint of step {step} could not be written: {error}",
            code="checkpoint_failed",
            hint=f"free some disk space, or move the run's folder; {left}",
            where=str(final),
        ) from error
    for old in complete(root)[: -max(keep, 1)]:
        shutil.rmtree(old)
    return final


def is_due(step: int, *, every: int, last: int) -> bool:
    """Whether a run of ``last`` steps writes a checkpoint after this one."""
    return step % every == 0 or step == last


def complete(root: Path) -> list[Path]:
    """Every checkpoint under ``root`` that has all its files, oldest step first; what is in them is not looked at."""
    return [path for path in _named(root) if is_complete(path)]


def newest(root: Path, *, say: Callable[[str], None] = lambda _: None) -> Path | None:
    """The newest whole checkpoint, `None` where none was ever written; ``say`` hears of newer ones that are damaged.

    Raises:
        StoreError: ``no_whole_checkpoint``: all that there are are damaged.
    """
    faults = []
    for checkpoint in reversed(_named(root)):
        fault = damage(checkpoint)
        if not fault:
            return checkpoint
        faults.append(f"{checkpoint.name} is damaged: {fault}")
        say(f"passing over a checkpoint: {faults[-1]}")
    if not faults:
        return None
    raise StoreError(
        f"no checkpoint is whole: {'; '.join(faults)}",
        code="no_whole_checkpoint",
        hint="put them back from a copy, or remove the folder to begin again at step 0, with the ledger as it is",
        where=str(root),
    )


def damage(checkpoint: Path) -> str:
    """What is wrong with a checkpoint, in words; empty where every file is as it was written."""
    try:
        for name, size, checksum in _listed(checkpoint):
            if (checkpoint / name).stat().st_size != size:
                return f"{name} has not the {size} bytes that were written"
            if checksum is not None and _crc32(checkpoint / name) != checksum:
                return f"{name} is not as it was written"
    except OSError as error:
        return f"{Path(str(error.filename)).name}: {error.strerror}"
    except _UNREADABLE:
        return f"{DONE} cannot be read"
    return ""


def step_of(checkpoint: Path) -> int:
    """The number of steps in a checkpoint's name."""
    return int(checkpoint.name.removeprefix("step-"))


def is_complete(checkpoint: Path) -> bool:
    """Whether the marker is there and every file it names has its size."""
    try:
        return all((checkpoint / name).stat().st_size == size for name, size, _ in _listed(checkpoint))
    except (OSError, *_UNREADABLE):
        return False


def _listed(checkpoint: Path) -> list[tuple[str, int, int | None]]:
    """Name, size and checksum of every file; no checksum in a checkpoint of before there were any."""
    done = json.loads((checkpoint / DONE).read_text(encoding="utf-8"))
    return [
        (name, fact["bytes"], fact["crc32"]) if isinstance(fact, dict) else (name, fact, None)
        for name, fact in done["files"].items()
    ]


def _named(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return sorted((path for path in root.iterdir() if _NAME.fullmatch(path.name)), key=step_of)


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

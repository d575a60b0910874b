"""The watcher that ends a sandbox's processes when what it wrote passed its disk limit.

For storage without a quota. A single file is held by RLIMIT_FSIZE already; this holds the sum. The overshoot is what
can be written between two looks. Sandboxes are looked at only while the file system they write to fills up, so that
idle ones cost nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from envsdk.errors import SandboxError

LOOK_S = 0.25
STEP_MIB = 4.0
_MIB = 1 << 20


class Watched(Protocol):
    """A sandbox whose written files lie on this machine."""

    disk_limit_mib: float

    async def written_mib(self) -> float | None: ...
    async def kill_agent_processes(self) -> int: ...


def folder_mib(folder: Path) -> float:
    """Disk blocks under a folder, in MiB; what vanishes while it is counted is not counted."""
    blocks = 0
    pending = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        blocks += entry.stat(follow_symlinks=False).st_blocks
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
        except (FileNotFoundError, PermissionError):
            continue
    return blocks * 512 / _MIB


def remove_tree(folder: Path) -> None:
    """Remove a folder that a sandbox wrote, also as an ordinary user and whatever modes its folders have."""
    if os.geteuid():
        for inside, names, _ in os.walk(folder):
            for name in names:
                path = Path(inside, name)
                if not path.is_symlink():
                    path.chmod(0o700)  # before the walk enters it
    shutil.rmtree(folder, ignore_errors=True)


def used_mib(path: Path) -> float:
    """How full the file system of ``path`` is."""
    status = os.statvfs(path)
    return (status.f_blocks - status.f_bfree) * status.f_frsize / _MIB


def free_mib(path: Path) -> int:
    """Whole MiB that are left on the file system of ``path`` for those who are not root."""
    status = os.statvfs(path)
    return int(status.f_bavail * status.f_frsize / _MIB)


def storage_failure(error: OSError, storage: Path) -> SandboxError:
    """What an operation on the sandboxes' storage ran into, as an error that tells a full disk from a broken one."""
    is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return SandboxError(
        f"the disk under the sandboxes is full: {storage}" if is_full else f"the sandboxes' storage failed: {error}",
        code="host_disk_full" if is_full else "storage_failed",
        hint="free space there, or point ENVSDK_HOME at another disk",
    )


class DiskWatch:
    """Looks after the sandboxes that ``boxes`` returns, on the file system of ``storage``, until closed."""

    def __init__(self, boxes: Callable[[], Iterable[Watched]], storage: Path) -> None:
        self._boxes = boxes
        self._storage = storage
        self._seen_mib = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look; a second call does nothing."""
        if self._task is None:
            self._seen_mib = used_mib(self._storage)
            self._task = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """One round. A sandbox over its limit loses its processes; its files stay to be graded."""
        now = used_mib(self._storage)
        if now < self._seen_mib + STEP_MIB:
            self._seen_mib = min(self._seen_mib, now)
            return
        self._seen_mib = now
        for box in list(self._boxes()):
            if (await box.written_mib() or 0.0) > box.disk_limit_mib:
                with contextlib.suppress(SandboxError):
                    await box.kill_agent_processes()

    async def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

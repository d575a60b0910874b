"""A control group per bubblewrap sandbox, version 1 or 2, where this process may make one.

Where it may not (an ordinary user without delegation), there is no group: limits are then per process (rlimits),
counters are `None`, and the provider's `describe` says so.
"""

from __future__ import annotations

import contextlib
import functools
import os
from dataclasses import dataclass
from pathlib import Path

from envsdk.sandboxes.limits import Bounds

PARENT = "envsdk"
PROCESSES_WORTH = 16
_ROOT = Path("/sys/fs/cgroup")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Group:
    """Folders of one sandbox's group, by controller; in version 2 they are one and the same."""

    version: int
    folders: tuple[tuple[str, Path], ...]

    def folder(self, controller: str) -> Path | None:
        """Where a controller's files are, if it is at hand."""
        return dict(self.folders).get(controller)

    def procs(self) -> list[Path]:
        """Files that list the group's processes."""
        return sorted({folder / "cgroup.procs" for _, folder in self.folders})

    def entries(self) -> list[Path]:
        """Files that a process of one thread writes ``0`` to, to be in the group.

        In version 1 that is not ``cgroup.procs``: a whole process is moved only after every processor of the machine
        has passed a quiet point, ten milliseconds on a busy one; a thread that moves itself waits for nobody.
        """
        name = "tasks" if self.version == 1 else "cgroup.procs"
        return sorted({folder / name for _, folder in self.folders})

    def read(self, controller: str, name: str) -> bytes | None:
        """Content of one of the group's files."""
        folder = self.folder(controller)
        try:
            return (folder / name).read_bytes() if folder is not None else None
        except OSError:
            return None

    def members(self) -> list[int]:
        """Processes in the group."""
        found: set[int] = set()
        for path in self.procs():
            with contextlib.suppress(OSError):
                found.update(int(line) for line in path.read_text(encoding="ascii").split())
        return sorted(found)

    def remove(self) -> bool:
        """Remove the empty group; `False` while processes are still in it."""
        for folder in {folder for _, folder in self.folders}:
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


@functools.cache
def version() -> int:
    """2 where the unified hierarchy is the only one, else 1."""
    return 2 if (_ROOT / "cgroup.controllers").is_file() else 1


@functools.cache
def available() -> bool:
    """Whether this process can make groups with a memory and a pids controller."""
    try:
        for base in _bases():
            base.mkdir(exist_ok=True)
            if not os.access(base / "cgroup.procs", os.W_OK):
                return False
        share_out_cpu()
        if version() == 2:
            (_ROOT / "cgroup.subtree_control").write_text("+memory +pids +cpu", encoding="ascii")
            (_ROOT / PARENT / "cgroup.subtree_control").write_text("+memory +pids +cpu", encoding="ascii")
    except OSError:
        return False
    return True


def share_out_cpu() -> None:
    """Let all sandboxes together weigh as much as sixteen processes, not as one.

    The kernel weighs a group against each single process beside it: on a busy machine the sandboxes of a whole run
    would share what one process gets.
    """
    if version() == 2:
        _put(_ROOT / PARENT / "cpu.weight", 100 * PROCESSES_WORTH)
    else:
        _put(_ROOT / "cpu" / PARENT / "cpu.shares", 1024 * PROCESSES_WORTH)


def _bases() -> list[Path]:
    if version() == 2:
        return [_ROOT / PARENT]
    return [_ROOT / name / PARENT for name in ("memory", "pids", "cpu")]


def create(name: str, limit: Bounds) -> Group | None:
    """Make a group with these limits; `None` where that is not possible here."""
    if not available():
        return None
    if version() == 2:
        folder = _ROOT / PARENT / name
        folder.mkdir()
        group = Group(2, (("memory", folder), ("pids", folder), ("cpu", folder)))
        _put(folder / "memory.max", limit.memory_mib * _MIB)
        _put(folder / "memory.swap.max", 0)
        _put(folder / "pids.max", limit.pids)
        _put(folder / "cpu.max", f"{int(limit.cpus * 100_000)} 100000")
        return group
    folders = tuple((base.parent.name, base / name) for base in _bases())
    for _, folder in folders:
        folder.mkdir()
    group = Group(1, folders)
    by_name = dict(folders)
    _put(by_name["memory"] / "memory.limit_in_bytes", limit.memory_mib * _MIB)
    _put(by_name["memory"] / "memory.memsw.limit_in_bytes", limit.memory_mib * _MIB)
    _put(by_name["pids"] / "pids.max", limit.pids)
    _put(by_name["cpu"] / "cpu.cfs_quota_us", int(limit.cpus * 100_000))
    return group


def _put(path: Path, value: object) -> None:
    # Swap accounting is absent from some kernels; the memory limit itself is set before it.
    with contextlib.suppress(FileNotFoundError):
        path.write_text(str(value), encoding="ascii")


def leftovers() -> list[Group]:
    """Every sandbox's group on this machine, for the reaper."""
    names: dict[str, list[tuple[str, Path]]] = {}
    for base in _bases():
        controller = base.parent.name if version() == 1 else "memory"
        if base.is_dir():
            for folder in base.iterdir():
                if folder.is_dir():
                    names.setdefault(folder.name, []).append((controller, folder))
    return [Group(version(), tuple(folders)) for folders in names.values()]

"""The processes that a verification started and left behind, and their end, in whatever session they hide.

Promised to a process that adopts orphans: none of its descendants outlives `end_orphans`, however often it forks. Not
promised: the end of one that this user may not signal, or of a crowd that `MAX_SWEEPS` rounds do not get hold of.
A copy lies beside the program `envsdk.verifying.zygote`, so nothing of envsdk can be imported here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Collection
from pathlib import Path

MAX_SWEEPS = 1000
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own, so that none can hide in a session of its own."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_session(pid: int) -> None:
    """End every process of a session, by its leader's number."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_orphans(living: Collection[int]) -> None:
    """Kill what ended runs left behind, however often it forks; the sessions of ``living`` runs are let alone."""
    stopped: set[int] = set()
    for _ in range(MAX_SWEEPS):
        orphans = {pid for pid in own_children() if pid not in living and session(pid) not in living}
        if not orphans:
            return
        found = with_descendants(orphans)
        # All are stopped before the first is killed: what still runs would fork for each one that ends.
        fresh = found - stopped
        for pid in fresh or found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGSTOP if fresh else signal.SIGKILL)
        stopped |= fresh
        if not fresh:
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def own_children() -> list[int]:
    """Processes whose parent is this one."""
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def with_descendants(pids: Collection[int]) -> set[int]:
    """These processes and all below them."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                below.setdefault(int(parent), []).append(int(entry.name))
    found, pending = set(pids), list(pids)
    while pending:
        fresh = set(below.get(pending.pop(), ())) - found
        found |= fresh
        pending += fresh
    return found


def session(pid: int) -> int:
    """The session of a process, or 0 where it is gone."""
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return 0

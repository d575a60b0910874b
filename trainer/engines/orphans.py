"""No engine outlives its trainer: a spawned process ends when the one that spawned it is gone, however it went.

What a killed trainer left in memory, its weight file, and on the disk, its engines' sockets and files, goes with it.

vLLM's core notices a parent that closes it, not one that was killed; it would go on holding its cores and memory.
Polled, since the kernel's own signal is tied to the thread that spawned, not to the process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

from envsdk.sandboxes.owner import start_ticks

OWNED = "ENVSDK_OWNS_ENGINES"
"""Set in the environment of a process whose engines shall end with it."""

_PROCESSES = Path("/proc")
_NAME = "end with parent"
_EVERY_S = 1.0


def end_with_parent() -> None:
    """In a process that `multiprocessing` spawned: watch the parent from a thread. Elsewhere, and again: nothing."""
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None or any(thread.name == _NAME for thread in threading.enumerate()):
        return
    threading.Thread(target=_watch, args=(parent.pid,), name=_NAME, daemon=True).start()


def alive(pid: int) -> bool:
    """Is a process of this id running? One that has ended and that its parent has not asked after yet is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return not _PROCESSES.is_dir() or start_ticks(pid) is not None


def _watch(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_EVERY_S)
    try:
        clear_up()
    finally:
        os.kill(os.getpid(), signal.SIGKILL)


def clear_up() -> None:
    """Remove what trainers that are gone have left in memory and of sockets."""
    from trainer.engines.sockets import folders_root, remove_abandoned_sockets
    from trainer.engines.weight_file import WEIGHTS_FOLDER, remove_abandoned

    remove_abandoned_sockets(folders_root())
    remove_abandoned(WEIGHTS_FOLDER)

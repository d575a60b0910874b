"""One process trains in a run's directory at a time: a lock file in it, held by the kernel for as long as one does.

Promised: a second process is refused at once, whatever the first is doing, and a killed process leaves no lock behind.
Not promised: anything across machines that share a file system without locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from envsdk.errors import UsageError

LOCK = ".lock"


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold a run's directory, made where missing.

    Raises:
        UsageError: ``run_in_use``: another process holds it; ``bad_run_dir``: it is a file.
        OSError: it cannot be made or written to.
    """
    if path.exists() and not path.is_dir():
        raise UsageError("is no directory", code="bad_run_dir", hint="give another --name or --runs", where=str(path))
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(
            "another process trains in this directory",
            code="run_in_use",
            hint="wait for its end, stop it, or give another --name",
            where=str(path),
        ) from None
    try:
        yield
    finally:
        lock.release()

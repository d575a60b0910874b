"""What the operating system refuses, as an error with a code: a full disk, a missing right, a path that is not there.

Promised: the code follows from the system's error number alone, the object is the path where the system names one, and
the hint says what to do. Not promised: whose fault it was; a caller that knows raises its own error instead.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envsdk.errors import StoreError


@dataclass(frozen=True, slots=True)
class _Reason:
    code: str
    hint: str


_FULL = _Reason(code="disk_full", hint="free some space on its disk, or point it at another one")
_FORBIDDEN = _Reason(code="permission_denied", hint="give this user the right, or use another place")
_MANY_FILES = _Reason(code="too_many_open_files", hint="raise the limit (ulimit -n), or lower the concurrency")
_REASONS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _Reason(code="read_only_disk", hint="its file system is mounted read-only: use another place"),
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.ENOENT: _Reason(code="no_such_file", hint="check the path"),
    errno.ENOTDIR: _Reason(code="not_a_folder", hint="a part of the path is a file: check the path"),
    errno.EISDIR: _Reason(code="is_a_folder", hint="give a file's path"),
    errno.EEXIST: _Reason(code="file_exists", hint="give another path, or remove it"),
    errno.ENAMETOOLONG: _Reason(code="name_too_long", hint="give a shorter path"),
    errno.ELOOP: _Reason(code="link_loop", hint="its links lead in a circle: check the path"),
    errno.EMFILE: _MANY_FILES,
    errno.ENFILE: _MANY_FILES,
    errno.EAGAIN: _Reason(code="no_process", hint="raise the limit of processes (ulimit -u), or lower the concurrency"),
    errno.ENOMEM: _Reason(code="out_of_memory", hint="free some memory, or lower the concurrency"),
}
_OTHER = _Reason(code="system_refused", hint="run again with --debug to see where")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give what the system refuses within the block this path, where it names none: a full disk never does."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def refusal(error: OSError) -> StoreError:
    """The error that says what the system refused."""
    reason = _REASONS.get(error.errno or 0, _OTHER)
    why = error.strerror or str(error) or type(error).__name__
    paths = [os.fsdecode(path) for path in (error.filename, error.filename2) if isinstance(path, str | bytes)]
    return StoreError(why, code=reason.code, hint=reason.hint, where=" -> ".join(paths))

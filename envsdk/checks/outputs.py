"""What an agent wrote among a task's artifacts: files by hash before and after, and the content of the changed ones."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Sandbox

MAX_FILES = 40
MAX_BYTES = 256 << 10


async def hash_files(box: Sandbox, paths: Iterable[str]) -> dict[str, str]:
    """sha256 of every regular file of at most `MAX_BYTES` at or under ``paths``. Raises `SandboxError`."""
    where = " ".join(shlex.quote(path) for path in paths)
    if not where:
        return {}
    command = f"find {where} -xdev -type f -size -{MAX_BYTES // 512} -exec sha256sum {{}} + 2>/dev/null"
    listed = await box.exec(command, user="root", cwd="/", timeout_s=60.0, output_cap_bytes=8 << 20)
    lines = listed.stdout.decode("utf-8", "surrogateescape").splitlines()
    # sha256sum marks names with a backslash or newline by a backslash; such files are left alone.
    return {line[66:]: line[:64] for line in lines if len(line) > 66 and not line.startswith("\\")}


async def list_folders(box: Sandbox, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of ``paths`` that are folders with a file in them. Raises `SandboxError`."""
    where = " ".join(shlex.quote(path) for path in paths)
    if not where:
        return ()
    command = f'for p in {where}; do [ -d "$p" ] && [ -n "$(find "$p" -type f | head -n 1)" ] && echo "$p"; done; true'
    listed = await box.exec(command, user="root", cwd="/", timeout_s=60.0)
    return tuple(listed.stdout.decode("utf-8", "surrogateescape").splitlines())


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Paths that are new or different, sorted, at most `MAX_FILES`."""
    return sorted(path for path, digest in after.items() if before.get(path) != digest)[:MAX_FILES]


async def read_files(box: Sandbox, paths: Iterable[str]) -> dict[str, bytes]:
    """Content of files; those that are gone are left out. Raises `SandboxError` where the box does not answer."""
    found = {}
    for path in paths:
        try:
            found[path] = await box.read(path, max_bytes=MAX_BYTES)
        except SandboxError as error:
            if error.code != "no_such_file":
                raise
    return found

"""Carry declared artifacts from the agent's box to the verifier's.

Promised: what the agent deleted is missing in the fresh box too; a link that leads out of its artifact is not
carried, so that an answer cannot be a link to the expected file. Not promised: owners (everything belongs to the
agent's user) or special files.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Sandbox
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.verifying.verdict import Artifacts

CAP_BYTES = 256 << 20
_ABSENT = {"no_such_file"}
_TOO_LARGE = {"bad_tree", "file_failed", "file_timeout"}


async def capture(sandbox: Sandbox, paths: Iterable[str], root: Path) -> Artifacts:
    """Copy ``paths`` out of a sandbox into the local folder ``root``.

    Raises:
        SandboxError: the sandbox does not answer.
    """
    captured, missing, dropped = [], [], []
    if isinstance(sandbox, KeptSandbox):
        await sandbox.make_room()  # else the end of an over-full box's processes could be that of the copying
    for path in dict.fromkeys(paths):
        target = root / path.strip("/")
        try:
            await sandbox.download(path.rstrip("/") or "/", target)
        except SandboxError as error:
            if error.code in _ABSENT:
                missing.append(path)
            elif error.code in _TOO_LARGE:
                dropped.append(path)
            else:
                raise
            continue
        dropped += _drop_leading_out(target, path)
        if size_bytes(target) > CAP_BYTES:
            dropped.append(path)
        elif target.exists():
            captured.append(path)
        else:
            missing.append(path)
    return Artifacts(root, tuple(captured), tuple(missing), tuple(dropped))


async def place(sandbox: Sandbox, artifacts: Artifacts) -> None:
    """Put captured artifacts where they lay; remove what the image has there and the agent did not leave.

    Raises:
        SandboxError: the sandbox does not answer or refuses a file.
    """
    everything = (*artifacts.captured, *artifacts.missing, *artifacts.dropped)
    if not everything:
        return
    removal = "rm -rf -- " + " ".join(_contents(path, sandbox.spec.workdir) for path in everything)
    await sandbox.exec(removal, user="root", cwd="/", timeout_s=60)
    folders = sorted({os.path.dirname(path.rstrip("/")) or "/" for path in artifacts.captured})  # noqa: PTH120
    folders += [path for path in artifacts.captured if artifacts.local(path).is_dir()]
    if folders:
        await sandbox.exec(["mkdir", "-p", "--", *folders], user="root", cwd="/", timeout_s=60)
    for path in artifacts.captured:
        await sandbox.upload(artifacts.local(path), path.rstrip("/") or "/")


def _contents(path: str, workdir: str) -> str:
    quoted = shlex.quote(path.rstrip("/"))
    # The work directory itself stays: commands start in it.
    return f"{quoted}/* {quoted}/.[!.]* {quoted}/..?*" if path.rstrip("/") == workdir.rstrip("/") else quoted


def _drop_leading_out(target: Path, path: str) -> list[str]:
    """Remove links that lead out of the captured tree; a link that is the whole artifact always does."""
    if target.is_symlink():
        target.unlink()
        return [path]
    dropped = []
    inside = Path(os.path.realpath(target))
    for folder, names, files in os.walk(target):
        for name in (*names, *files):
            place = Path(folder, name)
            if place.is_symlink() and not Path(os.path.realpath(place)).is_relative_to(inside):
                dropped.append(f"{path.rstrip('/')}/{place.relative_to(target).as_posix()}")
                place.unlink()
    return dropped


def size_bytes(target: Path) -> int:
    """Content of a captured artifact, a file or a folder."""
    if target.is_file():
        return target.stat().st_size
    return sum(place.lstat().st_size for place in target.rglob("*") if place.is_file() and not place.is_symlink())

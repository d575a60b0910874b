"""Copying into images that are built without an engine: COPY and ADD, exported and copied root trees."""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsdk.errors import SandboxError
from envsdk.sandboxes import trees
from envsdk.sandboxes.context import Context, matching
from envsdk.sandboxes.dockerfile import Copy

if TYPE_CHECKING:
    from envsdk.sandboxes.bubblewrap_box import BubblewrapSandbox


async def copy_in(
    box: BubblewrapSandbox, context: Context, copy: Copy, workdir: str, *, word: str, written: Mapping[str, bytes]
) -> None:
    """Do one COPY or ADD; ``written`` are sources that the Dockerfile itself holds.

    Raises `SandboxError` (``build_failed``) for a source that the context does not hold.
    """
    target = posixpath.join(workdir, copy.target)
    owner = copy.owner.partition(":")[0] if not copy.owner[:1].isdecimal() else copy.owner
    found = [path for pattern in copy.sources if pattern not in written for path in matching(context.files, pattern)]
    into_folder = copy.target.endswith("/") or copy.target in {".", "./"} or len(found) + len(written) > 1
    if not found and not written:
        raise SandboxError(
            f"the Dockerfile does not build: {word} {' '.join(copy.sources)}: no such file in the build context",
            code="build_failed",
            where=str(context.root),
        )
    mode = copy.mode if copy.mode is not None else 0o644
    for name, data in written.items():
        await box.write(await _place(box, target, name, into_folder=into_folder), data, mode=mode, user=owner)
    for name in found:
        path = context.root / name
        if path.is_dir() and not path.is_symlink():
            kept = {file.removeprefix(f"{name}/") if name else file for file in context.files}
            stream = await asyncio.to_thread(trees.pack, path, keep=kept.__contains__)
            await box.put_tree(stream, target, user=owner)
        elif word == "ADD" and await asyncio.to_thread(tarfile.is_tarfile, path):
            await box.put_tree(await asyncio.to_thread(_unpacked, path), target, user=owner)
        else:
            place = await _place(box, target, name, into_folder=into_folder)
            await box.upload(path, place, user=owner)
            if copy.mode is not None:
                await box.exec(["chmod", f"{copy.mode:o}", place], cwd="/")


async def _place(box: BubblewrapSandbox, target: str, name: str, *, into_folder: bool) -> str:
    is_folder = into_folder or (await box.exec(["test", "-d", target], cwd="/")).exit_code == 0
    return posixpath.join(target, posixpath.basename(name)) if is_folder else target


def _unpacked(path: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="envsdk-add-") as folder:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        return trees.pack(Path(folder))


def copy_tree(source: Path, target: Path) -> None:
    """A copy that is all the caller's own; devices, and what he may not read, are left out."""

    def copy_one(from_path: str, to_path: str) -> str:
        if os.access(from_path, os.R_OK):
            shutil.copy2(from_path, to_path)
        return to_path

    def unwanted(folder: str, names: list[str]) -> list[str]:
        special = [name for name in names if not _is_plain(Path(folder) / name)]
        return special + [
            name for name in names if (Path(folder) / name).is_dir() and not os.access(f"{folder}/{name}", os.X_OK)
        ]

    shutil.copytree(source, target, symlinks=True, ignore=unwanted, copy_function=copy_one)


def _is_plain(path: Path) -> bool:
    return path.is_symlink() or path.is_dir() or path.is_file()


def export_tree(api: Any, container: str, target: Path) -> None:
    """Write a container's file system to a folder, atomically; ownership is kept where the caller is root."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.mkdir()
    unpack = subprocess.Popen(
        ["tar", "-x", "-C", str(part), *(["--numeric-owner", "-p"] if os.geteuid() == 0 else ["--exclude=dev/*"])],
        stdin=subprocess.PIPE,
    )
    assert unpack.stdin is not None
    with unpack.stdin as pipe:
        for chunk in api.export(container):
            pipe.write(chunk)
    if unpack.wait():
        shutil.rmtree(part, ignore_errors=True)
        raise SandboxError(
            "the exported image could not be unpacked",
            code="export_failed",
            hint="see tar's lines above, and the free space under ENVSDK_HOME",
        )
    if target.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.replace(target)

"""A folder as a stream of entries, the form in which the helper packs and unpacks trees (``helper/ops.h``).

Entry: ``type[1] mode[4] path length[4] size[8] path content``; types ``f`` file, ``d`` folder, ``l`` link, ``e`` end.
Devices, sockets and FIFOs are left out. Unpacking refuses paths that leave the target folder, and never follows a link
that the stream itself made: what comes out of a sandbox is not trusted.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from envsdk.errors import SandboxError

_AGAIN = "read it again: the sandbox ended meanwhile, or its files were being changed"
_HEAD = struct.Struct("<cIIQ")
BLOCK_BYTES = 256 << 10


def pack(source: Path, *, keep: Callable[[str], bool] = lambda _path: True) -> bytes:
    """The tree under a folder, or a single file as the entry ``""``. Raises `OSError` for what cannot be read.

    ``keep`` is asked for each path relative to the folder; folders are packed whatever it says.
    """
    return b"".join(blocks(source, keep=keep))


def blocks(source: Path, *, keep: Callable[[str], bool] = lambda _path: True) -> Iterator[bytes]:
    """As `pack`, a piece of about a quarter of a MiB at a time; the files must not change meanwhile."""
    block = bytearray()
    for part in _parts(source, keep):
        block += part
        if len(block) >= BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    yield bytes(block)


def _parts(source: Path, keep: Callable[[str], bool]) -> Iterator[bytes]:
    if not source.is_dir() or source.is_symlink():
        yield from _entry(source, "")
    else:
        for folder, names, files in os.walk(source):
            names.sort()
            inside = Path(folder)
            for name in [*names, *sorted(files)]:
                path = inside / name
                relative = path.relative_to(source).as_posix()
                if path.is_dir() or keep(relative):
                    yield from _entry(path, relative)
    yield _head(b"e", 0, "", 0)


def _head(kind: bytes, mode: int, name: str, size: int) -> bytes:
    raw = os.fsencode(name)
    return _HEAD.pack(kind, mode, len(raw), size) + raw


def _entry(path: Path, name: str) -> Iterator[bytes]:
    status = path.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        aim = os.fsencode(path.readlink())
        yield _head(b"l", mode, name, len(aim)) + aim
    elif stat.S_ISDIR(status.st_mode):
        yield _head(b"d", mode, name, 0)
    elif stat.S_ISREG(status.st_mode):
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size
            yield _head(b"f", mode, name, left)
            while left:
                data = file.read(min(left, BLOCK_BYTES))
                if not data:
                    raise OSError(errno.EIO, "the file became shorter while it was read", str(path))
                left -= len(data)
                yield data


def entries(stream: bytes | mmap.mmap) -> Iterator[tuple[str, int, str, memoryview]]:
    """Yield ``(type, mode, path, content)``. Raises `SandboxError` (``bad_tree``) where the stream is cut or wrong."""
    at, view = 0, memoryview(stream)
    while True:
        if at + _HEAD.size > len(stream):
            raise SandboxError("the tree from the sandbox is cut short", code="bad_tree", hint=_AGAIN)
        kind, mode, name_bytes, size = _HEAD.unpack_from(stream, at)
        at += _HEAD.size
        if kind == b"e":
            return
        end = at + name_bytes + size
        if kind not in {b"f", b"d", b"l"} or end > len(stream):
            raise SandboxError("the tree from the sandbox is cut short", code="bad_tree", hint=_AGAIN)
        yield kind.decode(), mode, os.fsdecode(stream[at : at + name_bytes]), view[at + name_bytes : end]
        at = end


def unpack_file(spool: IO[bytes], target: Path) -> None:
    """As `unpack`, of a stream that lies in a file, however long it is."""
    spool.flush()
    is_empty = not os.fstat(spool.fileno()).st_size  # what a mapping cannot be of
    unpack(b"" if is_empty else mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ), target)


def unpack(stream: bytes | mmap.mmap, target: Path) -> None:
    """Write the tree at ``target``; a stream of one entry ``""`` becomes that file. Raises `SandboxError`."""
    links: set[PurePosixPath] = set()
    for kind, mode, name, content in entries(stream):
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or any(parent in links for parent in inside.parents):
            raise SandboxError(
                f"the sandbox sent a path that leaves its folder: {name!r}",
                code="bad_tree",
                hint="nothing was written outside the folder; take nothing from this sandbox for true",
            )
        path = target / inside if name else target
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "d":
            path.mkdir(exist_ok=True)
        elif kind == "l":
            links.add(inside)
            path.unlink(missing_ok=True)
            path.symlink_to(os.fsdecode(bytes(content)))
        else:
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            path.chmod((mode & 0o777) | stat.S_IRUSR | stat.S_IWUSR)

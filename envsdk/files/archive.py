"""Archives unpacked whole or not at all: tar, tar.gz and zip.

Promised: on any error nothing is left behind and nothing outside the destination was touched; declared sizes may
refuse, never accept (bytes are counted as they come). What may be unpacked is decided by `envsdk.files.members`.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from envsdk.errors import StoreError
from envsdk.files.members import Admission, Limits, Member, MemberKind, refuse, without_dot

_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    UnicodeDecodeError,
)
_CHUNK = 1 << 20
_LINK_MAX = 4096
_BITS = 0o777  # set-uid, set-gid and sticky bits are dropped


def unpack(archive: Path, dest: Path, *, limits: Limits | None = None) -> list[str]:
    """Unpack into a folder that does not exist yet or is empty; returns the paths of files and links, sorted.

    Raises:
        UsageError: one of the codes ``non_utf8_path absolute_path bad_path path_traversal through_symlink type_conflict
            duplicate_member special_file hardlink_escape expansion_limit too_many_members symlink_escape link_cycle``,
            or ``bad_archive`` where the file is not a readable archive.
        StoreError: the files could not be written.
    """
    admission = Admission(limits or Limits())
    dest.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{dest.name}.", dir=dest.parent))
    try:
        _fill(archive, staging, admission)
        admission.finish()
        for path, target in admission.links.items():
            (staging / path).symlink_to(target)
        staging.chmod(0o755)
        staging.replace(dest)
    except _BROKEN as error:
        raise refuse("bad_archive", f"not a readable archive: {error}", str(archive)) from error
    except OSError as error:
        hint = "look at the disk's space and rights where it is unpacked to; nothing was left there"
        raise StoreError(f"cannot unpack: {error}", code="unpack_failed", where=str(archive), hint=hint) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return sorted(path for path, kind in admission.kinds.items() if kind != "dir")


def _fill(archive: Path, staging: Path, admission: Admission) -> None:
    """Write every member but the links, which come last so that nothing can be written through one."""
    budget = admission.limits.max_bytes
    for member, content in _members(archive):
        path = admission.admit(member)
        if path is None:
            continue
        place = staging / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if member.kind == "dir":
            place.mkdir(exist_ok=True)
        elif member.kind == "hardlink":
            os.link(staging / without_dot(member.target), place)
        elif member.kind == "file":
            budget = _copy(content, place, budget)
            place.chmod(member.mode & _BITS | 0o600)


def _copy(content: IO[bytes] | None, place: Path, budget: int) -> int:
    """Write one file; returns what is left of the byte budget."""
    with place.open("xb") as out:
        while content is not None and (chunk := content.read(min(_CHUNK, budget + 1))):
            budget -= len(chunk)
            if budget < 0:
                raise refuse(
                    "expansion_limit", "holds more bytes than its header says and than are allowed", place.name
                )
            out.write(chunk)
    return budget


def _members(archive: Path) -> Iterator[tuple[Member, IO[bytes] | None]]:
    with archive.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    return _zip_members(archive) if is_zip else _tar_members(archive)


def _tar_members(archive: Path) -> Iterator[tuple[Member, IO[bytes] | None]]:
    with tarfile.open(archive, "r:*", encoding="utf-8", errors="surrogateescape") as tar:
        for info in tar:
            kind = _tar_kind(info)
            member = Member(info.name, kind, info.size, info.linkname, info.mode)
            yield member, tar.extractfile(info) if kind == "file" else None


def _tar_kind(info: tarfile.TarInfo) -> MemberKind:
    if info.issym():
        return "symlink"
    if info.islnk():
        return "hardlink"
    if info.isdir():
        return "dir"
    return "file" if info.isreg() else "special"


def _zip_members(archive: Path) -> Iterator[tuple[Member, IO[bytes] | None]]:
    with zipfile.ZipFile(archive) as box:
        for info in box.infolist():
            mode = info.external_attr >> 16
            kind = _zip_kind(info, mode)
            name = _zip_name(info)
            if kind == "symlink":
                yield Member(name, kind, 0, _zip_link(box, info)), None
            elif kind == "file":
                with box.open(info) as content:
                    yield Member(name, kind, info.file_size, mode=stat.S_IMODE(mode) or 0o644), content
            else:
                yield Member(name, kind), None


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The stored name: `ZipInfo.filename` is cut at NUL, and old writers store UTF-8 without the flag for it."""
    if info.flag_bits & 0x800:
        return info.orig_filename
    return info.orig_filename.encode("cp437").decode("utf-8", "surrogateescape")


def _zip_link(box: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    with box.open(info) as content:
        target = content.read(_LINK_MAX + 1)
    if len(target) > _LINK_MAX:
        raise zipfile.BadZipFile(f"a link of more than {_LINK_MAX} bytes")
    return target.decode("utf-8", "surrogateescape")


def _zip_kind(info: zipfile.ZipInfo, mode: int) -> MemberKind:
    if info.orig_filename.endswith("/") or stat.S_ISDIR(mode):
        return "dir"
    if stat.S_ISLNK(mode):
        return "symlink"
    return "file" if stat.S_IFMT(mode) in {0, stat.S_IFREG} else "special"

"""Archives made to order for conformance cases, the broken ones included."""

from __future__ import annotations

import stat
import tarfile
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envsdk.conformance.entries import content_of, name_of
from envsdk.conformance.run import SkipCaseError

_TAR_TYPES = {
    "file": tarfile.REGTYPE,
    "dir": tarfile.DIRTYPE,
    "symlink": tarfile.SYMTYPE,
    "hardlink": tarfile.LNKTYPE,
    "fifo": tarfile.FIFOTYPE,
    "char": tarfile.CHRTYPE,
    "block": tarfile.BLKTYPE,
}
_ZIP_TYPES = {
    "file": stat.S_IFREG,
    "dir": stat.S_IFDIR,
    "symlink": stat.S_IFLNK,
    "fifo": stat.S_IFIFO,
    "char": stat.S_IFCHR,
    "block": stat.S_IFBLK,
}


def build_archive(form: str, members: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write an archive of the format ``tar``, ``tar.gz`` or ``zip`` with these members of a case, in order."""
    match form:
        case "tar":
            _tar(members, path, "w")
        case "tar.gz":
            _tar(members, path, "w:gz")
        case "zip":
            _zip(members, path)
        case _:
            raise SkipCaseError(f"unknown archive format {form!r}")


def _kind(entry: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    kind = str(entry.get("type", "file"))
    if kind not in known:
        raise SkipCaseError(f"unknown member type {kind!r}")
    return kind


def _tar(members: Sequence[Mapping[str, Any]], path: Path, mode: str) -> None:
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for entry in members:
            kind = _kind(entry, _TAR_TYPES)
            content = content_of(entry)
            info = tarfile.TarInfo(name_of(entry).decode("utf-8", "surrogateescape"))
            info.type = _TAR_TYPES[kind]
            info.linkname = str(entry.get("target", ""))
            info.mode = int(str(entry.get("mode", "755" if kind == "dir" else "644")), 8)
            info.size = int(entry.get("size", len(content))) if kind == "file" else 0
            if "\0" in info.name:
                info.pax_headers = {"path": info.name}
            tar.addfile(info)  # the header alone: what follows may be less than it claims
            if content:
                tar.fileobj.write(content + b"\0" * (-len(content) % tarfile.BLOCKSIZE))
                tar.offset += len(content) + (-len(content) % tarfile.BLOCKSIZE)


def _zip(members: Sequence[Mapping[str, Any]], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as box:
        for entry in members:
            kind = _kind(entry, _ZIP_TYPES)
            info = zipfile.ZipInfo("placeholder")
            info.filename = name_of(entry).decode("utf-8", "surrogateescape")  # the constructor would mend bad names
            info.create_system = 3
            mode = int(str(entry.get("mode", "755" if kind == "dir" else "644")), 8)
            info.external_attr = (_ZIP_TYPES[kind] | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            content = str(entry.get("target", "")).encode() if kind == "symlink" else content_of(entry)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # duplicate names are what some cases are about
                box.writestr(info, content)
            if "size" in entry:
                info.file_size = int(entry["size"])  # goes into the central directory when the file is closed

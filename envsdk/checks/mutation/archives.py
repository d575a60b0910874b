"""Wrong archives: members of the right names with nothing in them, and the archive without its last member."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping

from envsdk.checks.mutation.mutant import Mutant

_GZIP = b"\x1f\x8b"
MAX_BYTES = 1 << 20
MAX_MEMBERS = 100


def mutants(path: str, content: bytes) -> Iterator[Mutant]:
    """Variations of a tar or zip file, or of one compressed file; none of what is neither."""
    members = _zipped(content) or _tarred(content)
    if members is not None and len(members) <= MAX_MEMBERS:
        write = _zip if content.startswith(b"PK") else _zipped_tar if content.startswith(_GZIP) else _tar
        if any(members.values()):
            yield Mutant(f"{path}: the same names with nothing in them", {path: write(dict.fromkeys(members, b""))})
        if len(members) > 1:
            yield Mutant(f"{path}: without its last member", {path: write(dict(list(members.items())[:-1]))})
    elif content.startswith(_GZIP):
        yield Mutant(f"{path}: another text, compressed", {path: gzip.compress(b"x\n")})


def _zipped(content: bytes) -> dict[str, bytes] | None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [info for info in archive.infolist() if not info.is_dir()]
            if sum(info.file_size for info in files) > MAX_BYTES:
                return None
            return {info.filename: archive.read(info) for info in files}
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError, OSError):
        return None


def _tarred(content: bytes) -> dict[str, bytes] | None:
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            room = MAX_BYTES
            for member in archive:
                room -= member.size
                if room < 0 or len(found) > MAX_MEMBERS:
                    return None
                file = archive.extractfile(member) if member.isreg() else None
                if file is not None:
                    found[member.name] = file.read()
    except (tarfile.TarError, EOFError, ValueError, OSError):
        return None
    return found or None


def _zip(members: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def _zipped_tar(members: Mapping[str, bytes]) -> bytes:
    return gzip.compress(_tar(members))


def _tar(members: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()

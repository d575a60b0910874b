"""Texts inside files that are no text: archives by member, compressed files, SQLite databases by row.

An agent can open each with a command, so that what lies in one lies in the image. Bounded in members and bytes; a file
that does not open is no container of texts.
"""

from __future__ import annotations

import bz2
import io
import lzma
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping

MAX_MEMBERS = 100
MAX_BYTES = 1 << 20
SEPARATOR = "!"
_SQLITE = b"SQLite format 3\0"
_COMPRESSED: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: zlib.decompressobj(wbits=31).decompress(data, MAX_BYTES),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data, MAX_BYTES),
    b"\xfd7zXZ": lambda data: lzma.LZMADecompressor().decompress(data, MAX_BYTES),
}
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError)
"""What the standard library raises for files that are cut short, encrypted, or of another kind."""


def texts_in(path: str, data: bytes) -> dict[str, str]:
    """Each text that lies inside a file, by ``path!member``; empty where nothing does."""
    found: dict[str, str] = {}
    room = MAX_BYTES
    for name, content in _members(data):
        room -= len(content)
        if room < 0 or len(found) >= MAX_MEMBERS:
            break
        text = text_of(content)
        if text is not None:
            found[f"{path}{SEPARATOR}{name}"] = text
    return found


def outer(path: str) -> str:
    """The file in the image that a path leads to or into."""
    return path.partition(SEPARATOR)[0]


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    if data.startswith(_SQLITE):
        yield from _rows(data)
        return
    if zipfile.is_zipfile(io.BytesIO(data)):
        yield from _zipped(data)
        return
    bare = _expanded(data)
    try:
        with tarfile.open(fileobj=io.BytesIO(bare)) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() and member.size <= MAX_BYTES else None
                if file is not None:
                    yield member.name.removeprefix("./"), file.read(MAX_BYTES)
    except (tarfile.TarError, *_BROKEN):
        if bare is not data:
            yield "content", bare


def _zipped(data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist()[:MAX_MEMBERS]:
                if not member.is_dir() and member.file_size <= MAX_BYTES:
                    yield member.filename, archive.read(member)
    except (zipfile.BadZipFile, *_BROKEN):
        return


def _expanded(data: bytes) -> bytes:
    """What a compressed file holds, at most `MAX_BYTES`; the file itself where it is not compressed."""
    for magic, expand in _COMPRESSED.items():
        if data.startswith(magic):
            try:
                return expand(data)
            except _BROKEN:
                return data
    return data


def _rows(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A text a table: a row a line, each cell behind the name of its column."""
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(data)
        for (table,) in base.execute("select name from sqlite_master where type = 'table'").fetchall():
            quoted = table.replace('"', '""')
            rows = base.execute(f'select * from "{quoted}" limit {MAX_MEMBERS}')  # noqa: S608 - quoted, and in memory
            columns = [column[0] for column in rows.description]
            lines = [", ".join(f"{name}: {cell}" for name, cell in zip(columns, row, strict=True)) for row in rows]
            yield table, "\n".join(f"{table} {line}" for line in lines).encode()
    except sqlite3.Error:
        return
    finally:
        base.close()


def text_of(data: bytes) -> str | None:
    """A file's content as text, `None` where it is none: not UTF-8, or with zero bytes."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None

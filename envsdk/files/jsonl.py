"""Rows in a JSONL file: one JSON object a line, UTF-8, ended by one LF and nothing else.

Promised: what is written is read back equal (integers of any size, shortest floats, every character but half a
surrogate pair, which becomes U+FFFD); a writer that was killed costs at most its last row, and the next append never
fuses with the torn one; a damaged row in the middle is an error with its line number, never skipped.
Not promised: locking. One process appends to a file at a time.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from envsdk.errors import StoreError
from envsdk.files.replace import replacing
from envsdk.refusal import naming

Row = dict[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")
_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a JSONL file holds. ``torn``: its last line was cut off while it was written, and is not among the rows."""

    rows: list[Row]
    torn: bool


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a whole file, in place of what was there, in one step: a reader sees the old file or the new one.

    Raises:
        StoreError: ``non_finite`` for NaN or infinity in a row, ``unwritable_row`` for a value that JSON does not have;
            nothing is written.
    """
    with replacing(path) as draft, draft.open("wb") as file:
        file.writelines(_encode(row, path) for row in rows)


def append_row(path: Path, row: Mapping[str, Any], *, fsync: bool = True) -> None:
    """Add one row. Bytes of a torn last line are removed first; a complete last line without newline gets its newline.

    With ``fsync`` the row is on the disk when this returns, not in a cache.

    Raises:
        StoreError: as `write_rows`; the file is unchanged then.
    """
    line = _encode(row, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("a+b") as file:
        line = _mend_tail(file) + line
        file.seek(0, os.SEEK_END)
        file.write(line)
        file.flush()
        if fsync:
            os.fsync(file.fileno())


def read_rows(path: Path) -> ReadResult:
    """Every row of a file. Blank lines are ignored.

    Raises:
        StoreError: ``corrupt_row`` for a line, other than a torn last one, that is not one JSON object; ``where`` is
            ``path:line``.
    """
    rows = list(_scan(path))
    torn = bool(rows) and rows[-1] is None
    return ReadResult([row for row in rows if row is not None], torn)


def iter_rows(path: Path) -> Iterator[Row]:
    """The rows of a file one at a time, for files larger than memory. A torn last line is left out."""
    return (row for row in _scan(path) if row is not None)


def _scan(path: Path) -> Iterator[Row | None]:
    """Each row in turn; `None`, at the end only, for a torn last line."""
    with path.open("rb") as file:  # iterating a binary file splits at 0x0A and nothing else
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            row = _decode(line)
            if row is None and line.endswith(b"\n"):
                raise StoreError(
                    f"line {number} is not one JSON object",
                    code="corrupt_row",
                    hint="a torn row that a later append ran into, or an edit; repair or remove the line",
                    where=f"{path}:{number}",
                )
            yield row


def _encode(row: Mapping[str, Any], path: Path) -> bytes:
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        if "JSON compliant" not in str(error):
            raise StoreError(
                f"a row cannot be written as JSON: {error}",
                code="unwritable_row",
                where=str(path),
                hint="rows hold texts, numbers, booleans, null, lists and objects",
            ) from error
        raise StoreError(
            f"a row holds a value that is no JSON: {error}",
            code="non_finite",
            hint="NaN and infinity are not JSON; leave the key out or store null",
            where=str(path),
        ) from error
    if _SURROGATE.search(text):  # halves that belong together become one character, the others U+FFFD
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.encode() + b"\n"


def _decode(line: bytes) -> Row | None:
    """The JSON object of a line, or `None` where it is not exactly one."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _mend_tail(file: BinaryIO) -> bytes:
    """Make the end of an open file fit for another row; returns the bytes that must precede it."""
    size = file.seek(0, os.SEEK_END)
    last = _last_line(file, size)
    if not last:
        return b""
    if not last.strip() or _decode(last) is not None:
        return b"\n"
    file.truncate(size - len(last))
    return b""


def _last_line(file: BinaryIO, size: int) -> bytes:
    """The bytes after the last newline; empty where the file ends in one."""
    tail = b""
    position = size
    while position > 0 and b"\n" not in tail:
        step = min(_TAIL_BYTES, position)
        position -= step
        file.seek(position)
        tail = file.read(step) + tail
    return tail[tail.rfind(b"\n") + 1 :]

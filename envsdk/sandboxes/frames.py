"""The wire between a sandbox's owner and the helper inside: frames, requests, and a stream of bytes cut into frames.

A frame is ``nonce[16] type[1] id[4] length[4] payload[length]``, little-endian; ``helper/helper.c`` says what each type
means.
A frame whose nonce is not ours was not written by the helper: `FrameError`, and the channel is lost.
Pure functions and one incremental parser; nothing here does I/O.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

NONCE_BYTES = 16
CHUNK_BYTES = 256 << 10
_HEAD = struct.Struct("<16scII")
_END = struct.Struct("<BIBQQQ")
_MAX_FRAME = 1 << 20
# In place of a count of bytes: input goes on, each piece answered before the next, until an empty one.
OPEN_INPUT = 0xFFFFFFFF


class FrameError(Exception):
    """The stream carries something the helper did not write."""


class Op(IntEnum):
    """What a started child does; all but the first two are file operations of the helper itself."""

    ARGV = 0
    SHELL = 1
    READ = 2
    WRITE = 3
    UNPACK = 4
    PACK = 5
    NOOP = 6


@dataclass(frozen=True, slots=True)
class End:
    """How a child ended: ``how`` is 0 exit, 1 signal, 2 could not start (``code`` = stage << 16 | errno)."""

    how: int
    code: int
    timed_out: bool
    total_bytes: int
    wall_us: int
    cpu_us: int


def frame(nonce: bytes, kind: bytes, number: int, payload: bytes = b"") -> bytes:
    """One frame, ready to be written."""
    return _HEAD.pack(nonce, kind, number, len(payload)) + payload


def text(value: str | bytes) -> bytes:
    """A string as the helper reads it: length, bytes, closing zero. Raises `ValueError` for a zero inside."""
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if b"\0" in raw:
        raise ValueError("a string for the sandbox holds a NUL byte")
    return struct.pack("<I", len(raw) + 1) + raw + b"\0"


def texts(values: Sequence[str]) -> bytes:
    """A counted list of strings."""
    return struct.pack("<I", len(values)) + b"".join(text(value) for value in values)


def start_payload(
    op: Op,
    argv: Sequence[str],
    *,
    user: str,
    cwd: str = "",
    env: Iterable[tuple[str, str]] = (),
    timeout_s: float,
    output_cap_bytes: int,
    stdin_bytes: int = 0,
) -> bytes:
    """Payload of a start request."""
    head = struct.pack("<BQQI", op, max(1, int(timeout_s * 1e6)), output_cap_bytes, stdin_bytes)
    return head + text(user) + text(cwd) + texts(argv) + texts([f"{name}={value}" for name, value in env])


def parse_end(payload: bytes) -> End:
    """Payload of an end frame."""
    how, code, timed_out, total, wall_us, cpu_us = _END.unpack(payload)
    return End(how, code, bool(timed_out), total, wall_us, cpu_us)


def parse_peek(payload: bytes) -> list[bytes | None]:
    """Contents of the peeked files in order; `None` where one could not be read."""
    found: list[bytes | None] = []
    at = 0
    while at < len(payload):
        (size,) = struct.unpack_from("<I", payload, at)
        at += 4
        if size == 0xFFFFFFFF:
            found.append(None)
        else:
            found.append(payload[at : at + size])
            at += size
    return found


class Parser:
    """Cuts a byte stream into frames: feed it what arrives, in pieces of any size."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield ``(type, id, payload)`` for each frame that is now whole. Raises `FrameError`."""
        rest = self._rest
        rest += data
        at = 0
        try:
            while len(rest) - at >= _HEAD.size:
                nonce, kind, number, length = _HEAD.unpack_from(rest, at)
                if nonce != self._nonce or length > _MAX_FRAME:
                    raise FrameError("a frame without the channel's nonce")
                if len(rest) - at < _HEAD.size + length:
                    break
                start = at + _HEAD.size
                at = start + length
                yield kind[0], number, bytes(rest[start:at])
        finally:
            del rest[:at]

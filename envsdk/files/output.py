"""Bytes of a command as text: decoded over chunk borders, capped without breaking a character, stripped for display.

Promised: decoding never raises; NUL, CR and escape sequences stay; no newline is added, removed or changed; a cut never
makes a U+FFFD. Not promised: that capped text can be joined back to what the command wrote.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[PX^_][^\x1b]*\x1b\\"  # device control and the other strings
    r"|[ -/]+[0-~]"  # character sets, as `tput sgr0` writes them
    r"|[0-Z\\^-~]"  # two characters
    r")"
)
_CONTINUATION = range(0x80, 0xC0)


@dataclass(frozen=True, slots=True)
class Output:
    """What a command wrote, as text.

    Attributes:
        head: the beginning; everything, unless truncated.
        tail: the end, where the middle was left out; else empty.
        total_bytes: bytes written, kept or not.
        kept_bytes: bytes that `head` and `tail` stand for.
    """

    head: str
    tail: str
    total_bytes: int
    kept_bytes: int

    @property
    def truncated(self) -> bool:
        """Bytes are missing between head and tail."""
        return self.kept_bytes < self.total_bytes

    @property
    def text(self) -> str:
        """What was kept, and nothing else."""
        return self.head + self.tail

    def shown(self) -> str:
        """The text with a line that says what is missing, where something is."""
        if not self.truncated:
            return self.text
        return f"{self.head}\n[... {self.total_bytes - self.kept_bytes} bytes left out ...]\n{self.tail}"


def decode(data: bytes) -> str:
    """UTF-8 with one U+FFFD for each maximal invalid part (the WHATWG rule)."""
    return data.decode("utf-8", errors="replace")


def collect(chunks: Iterable[bytes], *, cap_bytes: int | None = None) -> Output:
    """Text of all chunks together. With ``cap_bytes`` the first and the last half of that many bytes are kept.

    Memory stays within a few times the cap, however much comes.
    """
    if cap_bytes is None:
        data = b"".join(chunks)
        return Output(decode(data), "", len(data), len(data))
    head_cap = (cap_bytes + 1) // 2
    tail_cap = cap_bytes - head_cap
    head, tail, total = bytearray(), bytearray(), 0
    for chunk in chunks:
        total += len(chunk)
        room = head_cap - len(head)
        head += chunk[:room]
        tail += chunk[room:]
        if len(tail) > 2 * tail_cap + 4096:
            del tail[: len(tail) - tail_cap - 1]  # one byte more than fits still tells that something is missing
    if total <= cap_bytes:
        return Output(decode(bytes(head + tail)), "", total, total)
    kept_head = _without_cut_end(bytes(head))
    kept_tail = _without_cut_start(bytes(tail[len(tail) - tail_cap :]))
    return Output(decode(kept_head), decode(kept_tail), total, len(kept_head) + len(kept_tail))


def plain(text: str) -> str:
    """Text without terminal escape sequences, for display only; everything else is kept."""
    return _ESCAPE.sub("", text)


def _without_cut_end(data: bytes) -> bytes:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data)
    pending, _ = decoder.getstate()
    return data[: len(data) - len(pending)]


def _without_cut_start(data: bytes) -> bytes:
    skip = 0
    while skip < min(3, len(data)) and data[skip] in _CONTINUATION:
        skip += 1
    return data[skip:]

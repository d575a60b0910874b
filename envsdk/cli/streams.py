r"""The program's stdout and stderr, made so that neither can fail a command that did its work.

Promised: a reader of stdout that left ends no command, so that its exit code stays its verdict (``envsdk check ... |
head -1``); what stderr cannot take is dropped; a character that a stream's encoding does not have is written as
``\uXXXX``, which JSON reads back; a stream that was closed is the null device. A result that finds no room on the disk
is an error: `flush_result` raises it.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path
from typing import TextIO

ESCAPE = "envsdk.escape"


class _Lenient(io.FileIO):
    """A descriptor whose lost readers, or every refusal, are nobody's failure."""

    def __init__(self, descriptor: int, *, forgiven: type[OSError]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._forgiven = forgiven

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except self._forgiven:
            return memoryview(data).nbytes  # type: ignore[arg-type]
        except OSError as error:
            error.filename = "stdout"
            raise


def use_lenient_streams() -> None:
    """Replace the process's own stdout and stderr. Streams that somebody else put there stay."""
    codecs.register_error(ESCAPE, _escape)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _lenient(sys.stdout, 1, forgiven=BrokenPipeError)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _lenient(sys.stderr, 2, forgiven=OSError)


def flush_result() -> None:
    """Hand what was printed to the system. Raises OSError where it is refused, and drops it then."""
    try:
        sys.stdout.flush()
    except OSError:
        # The interpreter flushes again at its end, and must not fail a second time.
        sys.stdout = _null()
        raise


def _lenient(stream: TextIO | None, descriptor: int, *, forgiven: type[OSError]) -> TextIO:
    if stream is None:  # closed before the program began
        return _null()
    stream.flush()
    raw = io.BufferedWriter(_Lenient(descriptor, forgiven=forgiven))
    return io.TextIOWrapper(
        raw, encoding=stream.encoding, errors=ESCAPE, line_buffering=descriptor == 2 or stream.isatty()
    )


def _null() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8", errors=ESCAPE)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2)), error.end

"""Progress on stderr: a time stamp and a line, the same on a terminal and in a pipe."""

from __future__ import annotations

import sys
import time


class Lines:
    """Prints what happens, one line each, with the seconds since the start in front."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, text: str) -> None:
        print(f"{time.monotonic() - self._start:7.1f}  {text}", file=sys.stderr, flush=True)

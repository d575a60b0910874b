"""A process that outlives a trainer which is killed while its engine starts, and ends what that had spawned.

It notices by the end of its input, and is itself killed when the start is over, well or not. vLLM loads plugins, and
with them `trainer.engines.orphans`, only after it has shaken hands with the trainer, for which it waits five minutes.
Not promised: a process spawned in the last tenths of a second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self, TextIO

from envsdk.sandboxes.owner import start_ticks


class Guard:
    """Watches over a start as a context; what it was told of lives on where the start ended, however that was."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # an interrupt at the terminal is not for it
        )
        return self

    def watch(self, pids: Iterable[int | None]) -> None:
        """Add processes; those that are known already are passed over."""
        for pid in pids:
            if pid is not None and pid not in self._told:
                self._told.add(pid)
                self._say(str(pid))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()  # before its input ends: that would mean that this process did
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _say(self, line: str) -> None:
        with suppress(BrokenPipeError):  # somebody ended it: the start can do without
            assert self._process.stdin is not None
            self._process.stdin.write(f"{line}\n".encode())


def stand_by(lines: TextIO) -> None:
    """When ``lines`` end, kill every process that they named."""
    started = {pid: start_ticks(pid) for pid in map(int, lines)}
    for pid, ticks in started.items():
        if ticks is not None and start_ticks(pid) == ticks:  # not a stranger that has the number now
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    from trainer.engines.orphans import clear_up

    clear_up()


if __name__ == "__main__":
    stand_by(sys.stdin)

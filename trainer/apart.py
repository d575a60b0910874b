"""A program that works in a process of its own, so that what cannot be interrupted can be given up at once.

Promised: an interrupt ends the program, whether it reaches plain code that waits in `run_apart` or cancels a task that
does; the program ends with the process that started it, however that goes. Not promised: that it leaves nothing on the
disk; its folder is the caller's.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from envsdk.errors import StoreError

LOOK_S = 0.1


def run_apart(arguments: Sequence[str]) -> None:
    """Run Python with ``arguments``, a program that calls `watched`, and wait for its end.

    Raises:
        OSError: what the program met.
        StoreError: ``model_not_made``: it failed otherwise, or was killed.
        asyncio.CancelledError: this was called in a task that was cancelled meanwhile.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", *arguments],
        stdin=subprocess.PIPE,  # closed with this process: see `watched`
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt at the terminal is for this process, which ends the other
    )
    with process:
        try:
            wait_unless_given_up(lambda: process.poll() is not None)
        except BaseException:  # an interrupt above all
            process.kill()
            process.wait()  # here: after an interrupt the context would wait for a quarter of a second only
            raise
        told = process.stdout.read() if process.stdout else ""
    if process.returncode == 0:
        return
    if told:
        number, text, file = json.loads(told)
        raise OSError(number, text, file)
    ended = "failed" if process.returncode > 0 else f"was killed by {signal.Signals(-process.returncode).name}"
    raise StoreError(
        f"the program that makes the model {ended}",
        code="model_not_made",
        hint="see its lines above; it needs 2 GiB of memory",
        where=" ".join(arguments),
    )


def wait_unless_given_up(is_over: Callable[[], bool]) -> None:
    """Ask until ``is_over``; blocks, an event loop too. Raises as `run_apart` where it is given up."""
    while not is_over():
        if _is_cancelled():
            raise asyncio.CancelledError
        threading.Event().wait(LOOK_S)


def watched(work: Callable[[], None]) -> None:
    """In the program: do ``work``, tell who waits of an `OSError`, and end at once when they are gone."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        work()
    except OSError as error:
        answers.write(json.dumps([error.errno, error.strerror or str(error), error.filename and str(error.filename)]))
        answers.flush()
        sys.exit(1)


def _end_with_stdin() -> None:
    os.read(0, 1)  # not by sys.stdin, whose lock the end of the interpreter wants
    os._exit(1)


def _is_cancelled() -> bool:
    """Whether the task around this call, if any, was cancelled: a signal's handler can do that while it blocks."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # in no event loop
        return False
    return task is not None and task.cancelling() > 0

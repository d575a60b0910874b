"""The harness's side of the processes that run Python verifiers: started once per verifier, kept warm, always killable.

A worker is a `envsdk.verifying.zygote` that has loaded one verifier module; it forks a child for each run, so that a
run costs a few milliseconds and shares nothing with another. Workers are keyed by the content of the tests' files
without the parameters, so that a family's tasks share one. The least recently used worker is ended when there are too
many.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import OrderedDict
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from envsdk.errors import VerifierError
from envsdk.files.scratch import scratch
from envsdk.verifying.group import end_group, joined, open_group
from envsdk.verifying.isolation import wrap
from envsdk.verifying.surroundings import PLAIN, Surroundings

MAX_WORKERS = 32
_ZYGOTE = Path(__file__).with_name("zygote.py")
_AUTHORING = Path(__file__).parents[1] / "authoring"
_BESIDE = (_ZYGOTE, _ZYGOTE.with_name("descendants.py"), _AUTHORING / "state.py", _AUTHORING / "runner.py")


class Worker:
    """One zygote and the threads' view of it: requests go in, futures come back."""

    def __init__(self, tests: Path, module_file: str, surroundings: Surroundings = PLAIN) -> None:
        self._closing = ExitStack()
        self._folder = self._closing.enter_context(scratch("verifier"))
        self._tests = self._folder / "tests"
        shutil.copytree(tests, self._tests, symlinks=True)
        for source in _BESIDE:
            shutil.copy(source, self._folder)
        # Not -I, which is -E too: the hash seed is a variable. The plain environment below has no other of Python's.
        program = [sys.executable, "-s", "-P", str(self._folder / "zygote.py"), str(self._tests), module_file]
        command, self.isolation = wrap([*surroundings.prefix(self._folder), *program], self._folder)
        self._group = open_group()
        self._numbers = itertools.count()
        self._pending: dict[int, Future[dict[str, Any]]] = {}
        self._is_open = True
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes]
        started: Future[None] = Future()
        listen = threading.Thread(
            target=self._live, args=(joined(command, self._group), started), name="envsdk-verifier", daemon=True
        )
        listen.start()
        started.result()

    @property
    def alive(self) -> bool:
        """The process has not ended, and its answers are heard."""
        return self._is_open and self._process.poll() is None

    @property
    def busy(self) -> bool:
        """A run is in flight."""
        return bool(self._pending)

    def submit(self, request: dict[str, Any]) -> Future[dict[str, Any]]:
        """Ask for a run; the result is the zygote's answer, or ``{"lost": True}`` where the process went away."""
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            if not self._is_open:
                future.set_result({"lost": True})
                return future
            number = next(self._numbers)
            self._pending[number] = future
            try:
                self._write(json.dumps({"id": number, **request}).encode() + b"\n")
            except (BrokenPipeError, ValueError):
                self._pending.pop(number, None)
                future.set_result({"lost": True})
        return future

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self._process.stdin.write(view) or 0 :]

    def _live(self, command: list[str], started: Future[None]) -> None:
        """Start the process and hear it to its end, in one thread.

        A process in a box dies with its parent, and to the kernel that is the thread that started it: one of an event
        loop's pool would take the worker along when its loop is closed.
        """
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            )
        except OSError as error:
            started.set_exception(error)
            return
        started.set_result(None)
        self._listen()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            pending = b""
            while chunk := stream.read(1 << 16):
                *lines, pending = (pending + chunk).split(b"\n")
                if not all(self._take(line) for line in lines):
                    break
        with self._lock:
            self._is_open = False
            left, self._pending = self._pending, {}
        for future in left.values():
            if not future.cancelled():
                future.set_result({"lost": True})

    def _take(self, line: bytes) -> bool:
        """Hand on one answer; false, and the process is ended, where it is none."""
        try:
            said = json.loads(line)
            future = self._pending.pop(said["id"], None)
        except (ValueError, TypeError, KeyError):
            self._process.kill()
            return False
        if future is not None and not future.cancelled():
            future.set_result(said)
        return True

    def close(self) -> None:
        """End the process and remove its copy of the tests."""
        self._process.kill()
        self._process.wait()
        if self._group is not None:
            end_group(self._group)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._closing.close()


class Workers:
    """Every worker of this process, by the content of its verifier."""

    def __init__(self) -> None:
        self._workers: OrderedDict[tuple[str, str, Surroundings], Worker] = OrderedDict()
        self._lock = threading.Lock()

    def warm(self, key: str, module_file: str, surroundings: Surroundings = PLAIN) -> Worker | None:
        """The warm worker of a verifier, if there is one: nothing is waited for."""
        with self._lock:
            worker = self._workers.get((key, module_file, surroundings))
            if worker is None or not worker.alive:
                return None
            self._workers.move_to_end((key, module_file, surroundings))
            return worker

    def get(self, key: str, tests: Path, module_file: str, surroundings: Surroundings = PLAIN) -> Worker:
        """The warm worker of a verifier, or a new one.

        Raises:
            VerifierError: the tests' files are gone or the process cannot be started.
        """
        with self._lock:
            worker = self._workers.pop((key, module_file, surroundings), None)
            if worker is not None and not worker.alive:
                worker.close()
                worker = None
            if worker is None:
                try:
                    worker = Worker(tests, module_file, surroundings)
                except OSError as error:
                    raise VerifierError(
                        f"the verifier's process cannot be started: {error}",
                        code="upload_failed",
                        hint="see the machine's free memory and its limit of processes (ulimit -u)",
                        where=str(tests),
                    ) from error
            self._workers[key, module_file, surroundings] = worker
            idle = [name for name, other in self._workers.items() if not other.busy and other is not worker]
            surplus = [self._workers.pop(name) for name in idle[: max(0, len(self._workers) - MAX_WORKERS)]]
        for other in surplus:
            other.close()
        return worker

    def close(self) -> None:
        """End every worker."""
        with self._lock:
            workers, self._workers = list(self._workers.values()), OrderedDict()
        for worker in workers:
            worker.close()


WORKERS = Workers()
atexit.register(WORKERS.close)

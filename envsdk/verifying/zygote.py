"""A process that has loaded one Python verifier and forks a child for each verification.

Run as a program, never imported by the harness: ``python -I zygote.py TESTS_DIR MODULE_FILE``. One JSON object a line
on stdin asks for a run, one on stdout answers. A child sees its own answer and files only, writes to nothing that
outlives it, and is killed with its descendants when its time is over (`envsdk.verifying.descendants`). Its limits are
the kernel's.
"""

from __future__ import annotations

import base64
import importlib.abc
import importlib.util
import json
import math
import numbers
import os
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

TAIL_BYTES = 8 << 10
RESULT_CAP_BYTES = (1 << 20) + 1
HANDLE = "envsdk_state"
RUNNER = "envsdk_runner"
DESCENDANTS = "envsdk_descendants"
"""Modules that lie beside this file, since their packages would have to be loaded: the read handle, the runner, and
`envsdk.verifying.descendants`."""
MAX_PROCESSES = 256
"""That may be beside those there were when a run began; the kernel does not bound root outside of a user namespace."""
COUNTED_S = 0.1
MAX_CHILDREN = 2 * (os.cpu_count() or 1)


@dataclass
class Child:
    """One verification in flight: its process, its two pipes, what they said so far."""

    request_id: int
    pid: int
    deadline: float
    result: bytearray = field(default_factory=bytearray)
    output: bytearray = field(default_factory=bytearray)
    timed_out: bool = False


class Bundled(importlib.abc.MetaPathFinder):
    """Finds ``envsdk.graders`` among the tests, where a task brings the graders that it was written with."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - the protocol's arguments
        parts = name.split(".")
        if parts[:2] != ["envsdk", "graders"]:
            return None
        place = self._root.joinpath(*parts[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file) if file.is_file() else None


def load(tests_dir: str, module_file: str) -> Any:
    """Import the verifier's module from its file; siblings are importable.

    A task that was written out brings what its verifier needs of envsdk, and runs in sandboxes that have no other: here
    it meets the same stand-ins (`envsdk.authoring.runner`), in a process of a fourth of the size, which is what a fork
    costs. Where they are not enough for the module, and for any other task, it is the installed envsdk.
    """
    tests = Path(tests_dir)
    sys.path.insert(0, tests_dir)
    file = os.path.join(tests_dir, module_file)  # noqa: PTH118
    if (tests / "run_verifier.py").is_file():
        stand_in = import_file(RUNNER, str(Path(__file__).with_name("runner.py"))).Finder(tests / "_envsdk")
        sys.meta_path.insert(0, stand_in)
        try:
            return import_file("verifier", file)
        except Exception:  # noqa: BLE001 - whatever a stand-in makes of an author's code, the installed package decides
            sys.meta_path.remove(stand_in)
            for name in [name for name in sys.modules if name.partition(".")[0] == "envsdk"]:
                del sys.modules[name]
    sys.meta_path.insert(0, Bundled(tests / "_envsdk"))
    return import_file("verifier", file)


def import_file(name: str, path: str) -> Any:
    """Import one file as the module ``name``."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Serve until stdin ends."""
    wire = os.dup(1)
    os.dup2(2, 1)  # what the module prints while it is imported must not reach the wire
    sys.dont_write_bytecode = True
    tests_dir, module_file = sys.argv[1:3]
    # A folder that can be entered and not listed: runs that are in flight together do not find each other's files.
    tempfile.tempdir = tempfile.mkdtemp(prefix="verify-")
    Path(tempfile.tempdir).chmod(0o300)
    import_file(HANDLE, str(Path(__file__).with_name("state.py")))
    descendants = import_file(DESCENDANTS, str(Path(__file__).with_name("descendants.py")))
    try:
        module, broken = load(tests_dir, module_file), ""
    except BaseException:  # noqa: BLE001 - the verifier's own code: whatever it raises is every run's answer
        module, broken = None, traceback.format_exc(limit=-4)
    serve(wire, module, broken, descendants)


def serve(wire: int, module: Any, broken: str, descendants: Any) -> None:
    """The loop: requests in, children out, answers back."""
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ, "requests")
    woken, wakes = wake_on_child()
    selector.register(woken, selectors.EVENT_READ, "ended")
    descendants.adopt_orphans()
    own = (wire, woken, wakes)
    children: dict[int, Child] = {}
    waiting: list[dict[str, Any]] = []
    pending = b""
    is_open = True
    while is_open or children or waiting:
        while waiting and len(children) < MAX_CHILDREN:
            request = waiting.pop(0)
            if broken:
                answer(wire, request["id"], error=broken, exit_code=1)
            else:
                child = start(request, module, selector, own)
                children[child.pid] = child
        soonest = min((child.deadline for child in children.values()), default=None)
        for key, _ in selector.select(None if soonest is None else max(0.0, soonest - time.monotonic())):
            if key.data == "requests":
                chunk = os.read(0, 1 << 16)
                is_open = bool(chunk)
                if not chunk:
                    selector.unregister(0)
                *lines, pending = (pending + chunk).split(b"\n")
                waiting += [json.loads(line) for line in lines if line]
            elif key.data == "ended":
                os.read(key.fd, 1 << 12)
            else:
                drain(selector, key)
        for child in list(children.values()):
            finish(wire, child, children, selector, descendants)


def wake_on_child() -> tuple[int, int]:
    """A pipe that becomes readable when a child ends: its own pipes may be held open by what it left behind."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    return woken, wakes


def start(request: dict[str, Any], module: Any, selector: selectors.BaseSelector, own: tuple[int, ...]) -> Child:
    """Fork a child for one request; its clock starts here."""
    result_in, result_out = os.pipe()
    output_in, output_out = os.pipe()
    others_now = processes(int(time.monotonic() / COUNTED_S))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # What is this process's own, the wire above all, is out of a verifier's reach.
            others = [key.fd for key in selector.get_map().values() if key.data not in ("requests", "ended")]
            for descriptor in (result_in, output_in, *own, *others):
                os.close(descriptor)
            os.dup2(output_out, 1)
            os.dup2(output_out, 2)
            os.close(0)
            bound(request, others_now)
            code = run(request, module, result_out)
        finally:
            os._exit(code)
    os.close(result_out)
    os.close(output_out)
    child = Child(request["id"], pid, time.monotonic() + request["timeout_s"])
    selector.register(result_in, selectors.EVENT_READ, (child, child.result, RESULT_CAP_BYTES))
    selector.register(output_in, selectors.EVENT_READ, (child, child.output, TAIL_BYTES))
    return child


@lru_cache(maxsize=1)
def processes(moment: int) -> int:  # noqa: ARG001 - the key
    """How many processes there are, counted once for each moment: every run would pay for the count."""
    return sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208 - no Path for each


def bound(request: dict[str, Any], others_now: int) -> None:
    """Limits of the child: memory, processor time, file size, descriptors."""
    seconds = math.ceil(request["timeout_s"]) + 1
    memory = request["memory_mib"] << 20
    for what, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 64 << 20),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_NPROC, MAX_PROCESSES + others_now),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        bounded = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (bounded, bounded))


def run(request: dict[str, Any], module: Any, result: int) -> int:
    """In the child: call the function and write what it returned."""
    # Not by mkdtemp, whose generator each child would seed anew; the name is as hard to guess.
    folder = f"{tempfile.gettempdir()}/verify-{os.urandom(12).hex()}"
    os.mkdir(folder, 0o700)  # noqa: PTH102 - as little as can be
    try:
        os.chdir(folder)
        function = getattr(module, request["function"])
        value = function(subject(request, folder), **request["params"])
        said: dict[str, Any] = {"value": json.dumps(plain(value))}
        code = 0
    except BaseException:  # noqa: BLE001 - the verifier's own code: whatever it raises is this run's answer
        said, code = {"error": traceback.format_exc(limit=-4)[-4000:]}, 1
    finally:
        try:
            os.rmdir(folder)  # noqa: PTH106 - most leave nothing in it
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    sys.stderr.flush()
    data = json.dumps(said).encode()
    while data:
        data = data[os.write(result, data) :]
    return code


def subject(request: dict[str, Any], folder: str) -> Any:
    """What the function is asked about: the answer's text, or a read handle on the files."""
    if request["kind"] == "text":
        return base64.b64decode(request["answer"]).decode("utf-8", "replace")
    for path, kind, data, mode in request["files"]:
        place = Path(folder) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            place.symlink_to(data)
            continue
        if kind == "folder":
            place.mkdir(exist_ok=True)
        elif kind == "large":
            place.touch()
            os.truncate(place, int(data))
        else:
            place.write_bytes(base64.b64decode(data))
        place.chmod(mode | (0o700 if kind == "folder" else 0o400))
    return sys.modules[HANDLE].FolderState(Path(folder))


def plain(value: Any) -> Any:
    """A return value as JSON would have it: a bool counts as 1 or 0 here, since Python functions return comparisons."""
    if isinstance(value, dict):
        return {str(name): plain(member) for name, member in value.items()}
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return float(value)
    return float(value) if isinstance(value, numbers.Real) else value if value is None else str(value)


def drain(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Take what a child wrote; of the output only the tail is kept, of the result the head."""
    child, sink, cap = key.data
    chunk = os.read(key.fd, 1 << 16)
    if not chunk:
        selector.unregister(key.fd)
        os.close(key.fd)
        return
    sink.extend(chunk)
    if sink is child.output:
        del sink[: max(0, len(sink) - cap)]
    else:
        del sink[cap:]


def finish(
    wire: int, child: Child, children: dict[int, Child], selector: selectors.BaseSelector, descendants: Any
) -> None:
    """Answer for a child that has ended; what it started and left behind is ended with it."""
    ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None and time.monotonic() < child.deadline:
        return
    child.timed_out = ended is None
    descendants.end_session(child.pid)  # before it is reaped, while the number is still its own
    _, status = os.waitpid(child.pid, 0)
    descendants.end_orphans(children.keys() - {child.pid})
    for key in [key for key in selector.get_map().values() if key.data is not None and key.data[0] is child]:
        os.set_blocking(key.fd, False)
        try:
            while key.fd in selector.get_map():
                drain(selector, key)
        except BlockingIOError:
            selector.unregister(key.fd)
            os.close(key.fd)
    del children[child.pid]
    exit_code = os.waitstatus_to_exitcode(status)
    said: dict[str, Any] = {}
    if child.result and not child.timed_out:
        try:
            said = json.loads(child.result)
        except ValueError:
            said = {"error": "the verifier's result was cut short"}
    answer(
        wire,
        child.request_id,
        **said,
        timed_out=child.timed_out,
        exit_code=exit_code if exit_code >= 0 else None,
        signal=-exit_code if exit_code < 0 else None,
        output=child.output.decode("utf-8", "replace"),
    )


def answer(wire: int, request_id: int, **said: Any) -> None:
    """One line back."""
    data = (json.dumps({"id": request_id, **said}) + "\n").encode()
    while data:
        data = data[os.write(wire, data) :]


if __name__ == "__main__":
    main()

"""A sandbox on the local file system: real shell, real files, no isolation.

Each `FakeSandbox` owns a temporary folder; the container paths ``/app``, ``/tests``, ``/solution``, ``/logs`` and ``/tmp`` stand
for folders in it, and are rewritten in commands and in scripts that are written or uploaded. Output is rewritten back. Users are
ignored. Tests inject trouble through `Faults`, keyed by what the machinery would see, never by what a command prints.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Counters, ExecResult, Liveness, Sandbox, SandboxSpec, Snapshot

ROOTS = ("app", "tests", "solution", "logs", "tmp")
_CONTAINER_PATH = re.compile(r"(?<![\w./-])/(?=(?:" + "|".join(ROOTS) + r")(?![\w-]))")


@dataclass
class Faults:
    """What goes wrong, and when.

    Attributes:
        acquire: raised by the next acquisitions, in order.
        ensure_image: raised by `ensure_image`.
        exec: called with (sandbox, command); a returned result replaces the run, a raised error is the machinery's.
        counters, liveness: what the kernel and the probe report, where not the truth.
    """

    acquire: list[Exception] = field(default_factory=list)
    ensure_image: Exception | None = None
    exec: Callable[[FakeSandbox, str], ExecResult | None] | None = None
    counters: Counters = field(default_factory=lambda: Counters(oom_kills=0, pids_limit_hits=0))
    liveness: Liveness | None = None


class FakeSandbox:
    """One temporary folder with a shell."""

    def __init__(self, spec: SandboxSpec, faults: Faults, *, base: Path | None = None) -> None:
        self.id = f"fake-{uuid.uuid4().hex[:12]}"
        self.spec = spec
        self.faults = faults
        self.root = Path(tempfile.mkdtemp(prefix="envsdk-fake-"))
        self.commands: list[str] = []
        self.closed = False
        self._groups: set[int] = set()
        if base is not None:
            shutil.copytree(base, self.root, symlinks=True, dirs_exist_ok=True)
        for name in ROOTS:
            (self.root / name).mkdir(exist_ok=True)
        self.host(spec.workdir).mkdir(parents=True, exist_ok=True)

    def host(self, path: str) -> Path:
        """The local path that stands for a container path."""
        return self.root / path.lstrip("/")

    def inward(self, text: str) -> str:
        """``text`` with container paths replaced by local ones."""
        return _CONTAINER_PATH.sub(f"{self.root}/", text)

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float = 60.0,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes = b"",
        output_cap_bytes: int = 1 << 20,
    ) -> ExecResult:
        self._open()
        arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        text = command if isinstance(command, str) else " ".join(command)
        self.commands.append(text)
        if self.faults.exec is not None and (replaced := self.faults.exec(self, text)) is not None:
            return replaced
        start = time.monotonic()
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.root / "tmp"), **dict(self.spec.env), **(env or {})}
        # Output goes to files: asyncio's wait() would wait for background children that hold a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            try:
                process = await asyncio.create_subprocess_exec(
                    *[self.inward(argument) for argument in arguments],
                    cwd=self.host(cwd or self.spec.workdir),
                    env={name: self.inward(value) for name, value in variables.items()},
                    stdin=given,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except (FileNotFoundError, PermissionError) as error:
                return ExecResult(
                    exit_code=127 if isinstance(error, FileNotFoundError) else 126, stderr=str(error).encode()
                )
            self._groups.add(process.pid)
            timed_out = False
            try:
                await asyncio.wait_for(process.wait(), timeout_s)
            except TimeoutError:
                timed_out = True
                _kill_group(process.pid)
                await process.wait()
            except asyncio.CancelledError:
                _kill_group(process.pid)
                await process.wait()
                raise
            code = process.returncode if process.returncode is not None else -signal.SIGKILL
            out.seek(0)
            err.seek(0)
            stdout, stderr = out.read(), err.read()
        stdout, stderr = self._outward(stdout), self._outward(stderr)
        return ExecResult(
            exit_code=None if timed_out or code < 0 else code,
            signal=-code if code < 0 else None,
            stdout=stdout[:output_cap_bytes],
            stderr=stderr[:output_cap_bytes],
            timed_out=timed_out,
            truncated=max(len(stdout), len(stderr)) > output_cap_bytes,
            total_bytes=len(stdout) + len(stderr),
            seconds=time.monotonic() - start,
        )

    async def read(self, path: str, *, max_bytes: int = 16 << 20) -> bytes:
        self._open()
        try:
            with self.host(path).open("rb") as file:
                return file.read(max_bytes)
        except OSError as error:
            raise SandboxError(f"no file {path}", code="no_such_file", where=self.id) from error

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: str | None = None) -> None:
        self._open()
        target = self.host(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.write_bytes(self._script(data))
        except IsADirectoryError as error:
            raise SandboxError(f"{path} is a folder", code="is_a_folder", where=self.id) from error
        target.chmod(mode)

    async def upload(self, source: Path, target: str, *, user: str | None = None) -> None:
        self._open()
        self._place(source, self.host(target))

    async def download(self, source: str, target: Path) -> None:
        self._open()
        origin = self.host(source)
        if not origin.exists():
            raise SandboxError(f"no file {source}", code="no_such_file", where=self.id)
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(origin, target)

    async def snapshot(self) -> Snapshot:
        self._open()
        frozen = Path(tempfile.mkdtemp(prefix="envsdk-fake-snapshot-"))
        atexit.register(shutil.rmtree, frozen, ignore_errors=True)  # it outlives its sandbox, and nothing drops it
        shutil.copytree(self.root, frozen, symlinks=True, dirs_exist_ok=True)
        return Snapshot(id=str(frozen), provider="fake")

    async def fork(self, n: int) -> list[Sandbox]:
        self._open()
        return [FakeSandbox(self.spec, self.faults, base=self.root) for _ in range(n)]

    async def counters(self) -> Counters:
        return self.faults.counters

    async def alive(self) -> Liveness:
        return self.faults.liveness or Liveness(alive=not self.closed, engine_reachable=True, seconds=0.01)

    async def kill_agent_processes(self) -> int:
        killed = 0
        for group in list(self._groups):
            killed += _kill_group(group)
        self._groups.clear()
        return killed

    async def close(self) -> None:
        if not self.closed:
            await self.kill_agent_processes()
            self.closed = True
            shutil.rmtree(self.root, ignore_errors=True)

    def _place(self, source: Path, destination: Path) -> None:
        if source.is_dir():
            shutil.copytree(source, destination, symlinks=True, dirs_exist_ok=True)
            copied = [path for path in destination.rglob("*") if path.is_file() and not path.is_symlink()]
        else:
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, destination)
            copied = [destination]
        for path in copied:
            path.write_bytes(self._script(path.read_bytes()))

    def _open(self) -> None:
        if self.closed:
            raise SandboxError(f"sandbox {self.id} is closed", code="sandbox_closed", where=self.id)

    def _script(self, data: bytes) -> bytes:
        return self.inward(data.decode()).encode() if data.startswith(b"#!") or b"/logs/" in data else data

    def _outward(self, data: bytes) -> bytes:
        return data.replace(str(self.root).encode(), b"")


class FakeProvider:
    """Hands out `FakeSandbox`es and remembers them; ``open_count`` must be 0 at the end of every test that closes."""

    name = "fake"

    def __init__(self, *, faults: Faults | None = None, image: Callable[[FakeSandbox], None] = lambda _: None) -> None:
        self.faults = faults or Faults()
        self.handed_out: list[FakeSandbox] = []
        self._image = image

    @property
    def open_count(self) -> int:
        """Sandboxes handed out and not closed."""
        return sum(not sandbox.closed for sandbox in self.handed_out)

    async def ensure_image(self, environment: Path | None, image: str | None, *, build_s: float = 600.0) -> str:
        if self.faults.ensure_image is not None:
            raise self.faults.ensure_image
        return image or "fake:latest"

    async def acquire(self, spec: SandboxSpec, *, timeout_s: float = 60.0) -> Sandbox:
        if self.faults.acquire:
            raise self.faults.acquire.pop(0)
        sandbox = FakeSandbox(spec, self.faults)
        self._image(sandbox)
        self.handed_out.append(sandbox)
        return sandbox

    async def start_from(self, snapshot: Snapshot, spec: SandboxSpec, n: int = 1) -> list[Sandbox]:
        started = [FakeSandbox(spec, self.faults, base=Path(snapshot.id)) for _ in range(n)]
        self.handed_out.extend(started)
        return list(started)

    async def prewarm(self, spec: SandboxSpec, n: int) -> None:
        return None

    async def close(self) -> None:
        for sandbox in self.handed_out:
            await sandbox.close()


def _kill_group(group: int) -> int:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return 0
    return 1

"""A sandbox in memory, for tests of what talks to one: files are kept, and commands answered as they were told to be.

Nothing is executed. A command without an answer is an error, so that no test passes on what nobody wrote down.
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Counters, ExecResult, Liveness, Sandbox, SandboxSpec, Snapshot

Reply = str | bytes | int | ExecResult
Replies = Mapping[str, Reply] | Callable[[str], Reply | None]
"""Answers by command: what it prints, its exit status, or all of its end; or a function that tells."""


class MemorySandbox:
    """Implements `envsdk.sandboxes.base.Sandbox` without a process.

    Args:
        files: path -> content at the start.
        replies: answers to commands; an argument list is looked up as one would type it.
        spec: what the sandbox was asked to be.

    Attributes:
        files: what lies there now.
        commands: every command that was run, in order.
    """

    def __init__(
        self,
        *,
        files: Mapping[str, bytes] | None = None,
        replies: Replies | None = None,
        spec: SandboxSpec | None = None,
    ) -> None:
        self.id = f"memory-{uuid.uuid4().hex[:8]}"
        self.spec = spec or SandboxSpec(image="memory")
        self.files = dict(files or {})
        self.commands: list[str] = []
        self.closed = False
        self._replies = replies if replies is not None else {}

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
        del timeout_s, cwd, env, user, stdin
        self._open()
        text = command if isinstance(command, str) else shlex.join(command)
        self.commands.append(text)
        reply = self._replies(text) if callable(self._replies) else self._replies.get(text)
        if reply is None:
            hint = "give fake_sandbox(replies={command: what it prints})"
            raise SandboxError(f"nobody said what {text!r} answers", code="no_reply", where=self.id, hint=hint)
        return _ended(reply, output_cap_bytes)

    async def read(self, path: str, *, max_bytes: int = 16 << 20) -> bytes:
        self._open()
        if path not in self.files:
            raise SandboxError(f"no file {path}", code="no_such_file", where=path)
        return self.files[path][:max_bytes]

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: str | None = None) -> None:
        del mode, user
        self._open()
        self.files[path] = data

    async def upload(self, source: Path, target: str, *, user: str | None = None) -> None:
        del user
        self._open()
        self.files |= {f"{target.rstrip('/')}{inside}": data for inside, data in _read_tree(source).items()}

    async def download(self, source: str, target: Path) -> None:
        self._open()
        inside = {path: data for path, data in self.files.items() if path == source or path.startswith(f"{source}/")}
        if not inside:
            raise SandboxError(f"no file {source}", code="no_such_file", where=source)
        for path, data in inside.items():
            place = target / path.removeprefix(source).lstrip("/") if path != source else target
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

    async def snapshot(self) -> Snapshot:
        self._open()
        return Snapshot(id=self.id, provider="memory")

    async def fork(self, n: int) -> list[Sandbox]:
        self._open()
        return [MemorySandbox(files=self.files, replies=self._replies, spec=self.spec) for _ in range(n)]

    async def counters(self) -> Counters:
        return Counters()

    async def alive(self) -> Liveness:
        return Liveness(alive=not self.closed)

    async def kill_agent_processes(self) -> int:
        return 0

    async def close(self) -> None:
        self.closed = True

    def _open(self) -> None:
        if self.closed:
            raise SandboxError(
                "the sandbox is closed", code="channel_lost", hint="ask for another: fake_sandbox()", where=self.id
            )


def _read_tree(source: Path) -> dict[str, bytes]:
    """Content of a file (by the empty name), or of every file of a folder by its path inside, a slash before it."""
    if source.is_file():
        return {"": source.read_bytes()}
    files = [path for path in sorted(source.rglob("*")) if path.is_file()]
    return {f"/{path.relative_to(source).as_posix()}": path.read_bytes() for path in files}


def _ended(reply: Reply, cap: int) -> ExecResult:
    if isinstance(reply, ExecResult):
        return reply
    if isinstance(reply, int):
        return ExecResult(exit_code=reply)
    data = reply.encode() if isinstance(reply, str) else reply
    return ExecResult(exit_code=0, stdout=data[:cap], truncated=len(data) > cap, total_bytes=len(data))

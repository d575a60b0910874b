"""What every sandbox with a kept channel does the same way, whatever started it: commands, files, probes.

A back end subclasses `KeptSandbox` and adds snapshot, fork, engine facts and removal. File operations run in the helper
itself, as root, so they need no program in the image and no shell; files written belong to the named user.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from pathlib import Path

from envsdk.errors import SandboxError
from envsdk.sandboxes import egress, trees
from envsdk.sandboxes.base import Counters, ExecResult, Liveness, Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.channel import Channel, OutputSink
from envsdk.sandboxes.disk import storage_failure
from envsdk.sandboxes.frames import Op
from envsdk.sandboxes.limits import bounds
from envsdk.sandboxes.namespaces import socket_inside

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FILE_S = 120.0
_PROBE_S = 10.0
_TREE_CAP_BYTES = 1 << 30
_CODES = {
    errno.ENOENT: "no_such_file",
    errno.ENOTDIR: "no_such_file",
    errno.EISDIR: "is_a_folder",
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "disk_full",
    errno.EROFS: "read_only",
}


class KeptSandbox(ABC):
    """One running sandbox reached over its kept channel. Implements `envsdk.sandboxes.base.Sandbox`."""

    def __init__(self, sandbox_id: str, spec: SandboxSpec, channel: Channel, image_env: Mapping[str, str]) -> None:
        self.id = sandbox_id
        self.spec = spec
        self.has_shell = True
        self._channel = channel
        proxy = egress.proxy_variables() if spec.network == "allowlist" else {}
        self._env = {"PATH": DEFAULT_PATH, **image_env, **proxy, **dict(spec.env)}
        self._egress: egress.Egress | None = None
        self.disk_limit_mib = float(bounds(spec.limits).disk_mib)
        self._closed = False

    async def hello(self, *, timeout_s: float) -> None:
        """Wait until the helper answers. Raises `SandboxError` where it does not, or the user is unknown."""
        self.has_shell = await self._channel.hello(self.spec.workdir, self.spec.user, timeout_s=timeout_s)

    async def open_way_out(self, pid: int) -> None:
        """Serve an allow-listed network in the network namespace of process ``pid``. Raises `SandboxError`."""
        await self._close_way_out()
        self._egress = egress.Egress(self.spec.allowed_hosts)
        await self._egress.open(await socket_inside(pid, "listen", egress.PORT))

    async def _close_way_out(self) -> None:
        if self._egress is not None:
            await self._egress.close()

    async def _link(self) -> Channel:
        """The channel, of a sandbox that runs."""
        return self._channel

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float = 60.0,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes = b"",
        feed: AsyncIterable[bytes] | None = None,
        output_cap_bytes: int = 1 << 20,
        on_output: OutputSink | None = None,
    ) -> ExecResult:
        """Run a command; ``feed`` is input that goes on while it runs, in place of ``stdin``.

        ``on_output(stream, data)`` hears stdout (1) and stderr (2) as they are written, in place of the result.
        """
        is_shell = isinstance(command, str)
        channel = await self._link()
        return await channel.run(
            Op.SHELL if is_shell else Op.ARGV,
            [command] if isinstance(command, str) else list(command),
            user=self.spec.user if user is None else user,
            cwd=self.spec.workdir if cwd is None else cwd,
            env=self._env if env is None else {**self._env, **env},
            stdin=stdin,
            feed=feed,
            timeout_s=timeout_s,
            output_cap_bytes=output_cap_bytes,
            on_output=on_output,
        )

    async def read(self, path: str, *, max_bytes: int = 16 << 20) -> bytes:
        """Content of a file, at most ``max_bytes``. Raises `SandboxError` (``no_such_file``, ``is_a_folder``)."""
        return (await self._file_op(Op.READ, [path, str(max_bytes)], cap=max_bytes)).stdout

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: str | None = None) -> None:
        await self._file_op(Op.WRITE, [path, str(mode)], stdin=data, user=user)

    async def upload(self, source: Path, target: str, *, user: str | None = None) -> None:
        """Copy a file or a folder's content to ``target``, which belongs to ``user`` (the agent's by default)."""
        file = await asyncio.to_thread(_plain_file, source)
        if file is not None:
            await self.write(target, file[0], mode=file[1], user=user)
        else:
            await self._file_op(Op.UNPACK, [target], feed=_blocks(source), user=user)

    async def put_tree(self, stream: bytes, target: str, *, user: str | None = None) -> None:
        """Unpack a tree (`envsdk.sandboxes.trees`) into a folder, which is made if it is not there."""
        await self._file_op(Op.UNPACK, [target], stdin=stream, user=user)

    async def download(self, source: str, target: Path) -> None:
        # By way of a file: what an agent leaves must not fill its owner's memory.
        with tempfile.TemporaryFile(prefix="envsdk-tree-") as spool:
            failures: list[OSError] = []

            def keep(_stream: int, data: bytes) -> None:
                try:
                    spool.write(data)
                except OSError as error:  # raised here it would break the link
                    failures.append(error)

            await self._file_op(Op.PACK, [source], cap=_TREE_CAP_BYTES, on_output=keep)
            if failures:
                raise storage_failure(failures[0], Path(tempfile.gettempdir()))
            await asyncio.to_thread(trees.unpack_file, spool, target)

    async def _file_op(
        self,
        op: Op,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        feed: AsyncIterable[bytes] | None = None,
        user: str | None = None,
        cap: int = 0,
        on_output: OutputSink | None = None,
    ) -> ExecResult:
        channel = await self._link()
        result = await channel.run(
            op,
            argv,
            user=self.spec.user if user is None else user,
            stdin=stdin,
            feed=feed,
            timeout_s=_FILE_S,
            output_cap_bytes=cap,
            on_output=on_output,
        )
        what = f"{op.name.lower()} {argv[0]} in sandbox {self.id}"
        if result.channel_lost:
            raise SandboxError(
                f"could not {what}: {channel.lost or 'no answer'}",
                code="channel_lost",
                hint="the sandbox has ended: see whether its processes need more memory than it has",
            )
        if result.timed_out or result.signal:
            raise SandboxError(
                f"could not {what}: no end after {_FILE_S:.0f} s",
                code="file_timeout",
                hint="copy less at once, and see whether the machine's disk is busy",
            )
        if result.exit_code:
            number = result.exit_code
            raise SandboxError(f"could not {what}: {os.strerror(number)}", code=_CODES.get(number, "file_failed"))
        return result

    async def peek(self, paths: Sequence[str]) -> list[bytes | None]:
        """Kernel files as the helper sees them, read without starting a process; `None` where one cannot be read."""
        return await (await self._link()).peek(paths)

    async def answers(self) -> bool:
        """Whether a trivial child can be started, asked over the channel alone; never raises."""
        try:
            channel = await self._link()
            if channel.lost is not None:
                return False
            probe = await channel.run(Op.NOOP, [], user="root", timeout_s=_PROBE_S, output_cap_bytes=0)
        except SandboxError:
            return False
        return probe.exit_code == 0

    @property
    def is_linked(self) -> bool:
        """The link to the helper stands: a sandbox that ended lets go of it."""
        return self._channel.lost is None

    async def responds(self) -> bool:
        """Whether the sandbox's helper answers: what tells a whole warm sandbox, which nobody has used yet."""
        return await self._channel.ping(timeout_s=_PROBE_S)

    async def alive(self) -> Liveness:
        """Start a trivial child, and ask the engine what it knows; never raises."""
        began = time.monotonic()
        answered = await self.answers()
        facts = await self._engine_facts()
        return facts.model_copy(update={"alive": answered, "seconds": time.monotonic() - began})

    async def kill_agent_processes(self) -> int:
        return await (await self._link()).kill_all()

    async def make_room(self) -> None:
        """Count against the disk limit from here on: what runs next does not pay for what was written before."""
        self.disk_limit_mib = bounds(self.spec.limits).disk_mib + (await self.written_mib() or 0.0)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._close_way_out()
        self._channel.close()
        await self._remove()

    @abstractmethod
    async def dial(self, port: int) -> socket.socket:
        """A TCP connection to a port that something in the sandbox listens on. Raises `SandboxError`, `OSError`."""

    @abstractmethod
    async def written_mib(self) -> float | None:
        """Size of what the sandbox wrote over its image, where the back end can tell."""

    @abstractmethod
    async def _engine_facts(self) -> Liveness:
        """What the engine says about the sandbox; ``alive`` is overwritten."""

    @abstractmethod
    async def _remove(self) -> None:
        """Free everything the back end holds for this sandbox."""

    @abstractmethod
    async def counters(self) -> Counters: ...

    @abstractmethod
    async def snapshot(self) -> Snapshot: ...

    @abstractmethod
    async def fork(self, n: int) -> list[Sandbox]: ...


def _plain_file(path: Path) -> tuple[bytes, int] | None:
    """Content and mode; `None` for a folder or a link."""
    if path.is_dir() or path.is_symlink():
        return None
    return path.read_bytes(), stat.S_IMODE(path.stat().st_mode)


async def _blocks(source: Path) -> AsyncIterator[bytes]:
    """A tree's stream, read as it is sent."""
    blocks = trees.blocks(source)
    while data := await asyncio.to_thread(next, blocks, b""):
        yield data

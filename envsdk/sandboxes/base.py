"""The sandbox protocol: what every back end offers, and nothing about how.

A *provider* (docker, bubblewrap, or a third party's) hands out *sandboxes*. All methods are coroutines; one sandbox may
run many commands at once. A command that fails is data (`ExecResult`); an exception means that the machinery failed.
Back ends are found through the entry-point group ``envsdk.sandboxes`` and prove themselves with
``envsdk.sandboxes.conformance``.

Not promised: processes survive a snapshot (they do not), or a sandbox survives its provider (it must not).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from envsdk.frozen import Frozen


class Limits(Frozen):
    """Resource bounds of one sandbox. `None` means that the back end's default applies, never "unlimited"."""

    cpus: float | None = Field(default=None, gt=0)
    memory_mib: int | None = Field(default=None, gt=0)
    disk_mib: int | None = Field(default=None, gt=0)
    pids: int | None = Field(default=None, gt=0)


class SandboxSpec(Frozen):
    """What to start. Equal specs may share a warm pool: the pool's key is a hash of this record.

    Attributes:
        image: a local image reference, after alias resolution and building (`SandboxProvider.ensure_image`).
        user: the agent's user inside; ``root`` where a task needs it.
        workdir: where commands start.
        network: ``none``; ``internal`` (services of the episode only); ``public``; ``allowlist``.
        join: id of the network of an episode's services, if any.
    """

    image: str
    user: str = "agent"
    workdir: str = "/app"
    env: tuple[tuple[str, str], ...] = ()
    limits: Limits = Limits()
    network: Literal["none", "internal", "public", "allowlist"] = "none"
    allowed_hosts: tuple[str, ...] = ()
    join: str = ""


class ExecResult(Frozen):
    """How one command ended. Output is bytes as written, cut at the cap.

    Attributes:
        exit_code: 0-255, or `None` where a signal or the deadline ended it.
        signal: signal number that ended it, if any.
        timed_out: the deadline passed; the whole process tree was killed inside the sandbox.
        channel_lost: the link to the sandbox broke before an end was seen.
        total_bytes: bytes the command wrote, kept or not (stdout + stderr).
    """

    exit_code: int | None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    channel_lost: bool = False
    truncated: bool = False
    total_bytes: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """The command ran to its end with status 0."""
        return self.exit_code == 0 and not self.timed_out and not self.channel_lost


class Counters(Frozen):
    """What the kernel counted for one sandbox; `None` where the back end cannot read it."""

    oom_kills: int | None = None
    memory_peak_mib: float | None = None
    memory_limit_mib: float | None = None
    pids_limit_hits: int | None = None
    pids_peak: int | None = None
    pids_limit: int | None = None
    disk_used_mib: float | None = None
    disk_quota_mib: float | None = None


class Liveness(Frozen):
    """A probe after an event: facts for the outcome table that the model cannot write.

    Attributes:
        alive: a trivial command answered within the probe's deadline.
        main_exit_code: of the sandbox's first process, where it ended.
        oom_flag: what the engine reports.
        engine_reachable: the engine itself answered (`None`: there is none to ask).
        engine_restarted: the engine started later than the sandbox (`None`: not known).
    """

    alive: bool
    main_exit_code: int | None = None
    oom_flag: bool | None = None
    engine_reachable: bool | None = None
    engine_restarted: bool | None = None
    seconds: float = 0.0


class Snapshot(Frozen):
    """A frozen file system to fork from. Processes are not part of it."""

    id: str
    provider: str


@runtime_checkable
class Sandbox(Protocol):
    """One running sandbox.

    `exec` takes a shell string (run by ``/bin/sh -c``) or an argument list. Paths are absolute, inside the sandbox.
    Raises `SandboxError` for failures of the machinery only; `read` of a missing file raises it with the code
    ``no_such_file``.
    """

    id: str
    spec: SandboxSpec

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
    ) -> ExecResult: ...

    async def read(self, path: str, *, max_bytes: int = 16 << 20) -> bytes: ...
    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: str | None = None) -> None: ...
    async def upload(self, source: Path, target: str, *, user: str | None = None) -> None: ...
    async def download(self, source: str, target: Path) -> None: ...
    async def snapshot(self) -> Snapshot: ...
    async def fork(self, n: int) -> list[Sandbox]: ...
    async def counters(self) -> Counters: ...
    async def alive(self) -> Liveness: ...
    async def kill_agent_processes(self) -> int: ...
    async def close(self) -> None: ...


@runtime_checkable
class SandboxProvider(Protocol):
    """A back end. `acquire` may hand out a warm sandbox; `close` ends all that it started."""

    name: str

    async def ensure_image(self, environment: Path | None, image: str | None, *, build_s: float = 600.0) -> str:
        """Build (or find) an image and return its pinned reference; ``environment`` is a folder with a Dockerfile."""
        ...

    async def acquire(self, spec: SandboxSpec, *, timeout_s: float = 60.0) -> Sandbox: ...
    async def start_from(self, snapshot: Snapshot, spec: SandboxSpec, n: int = 1) -> list[Sandbox]: ...
    async def prewarm(self, spec: SandboxSpec, n: int) -> None: ...
    async def close(self) -> None: ...

"""One bubblewrap sandbox: its processes, its overlay, its control group, its end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envsdk.errors import SandboxError
from envsdk.sandboxes import cgroups, seccomp
from envsdk.sandboxes.base import Counters, Liveness, Sandbox, SandboxSpec, Snapshot
from envsdk.sandboxes.bubblewrap_network import joined_user
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.counting import counters_from
from envsdk.sandboxes.disk import folder_mib, remove_tree
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.limits import OPEN_FILES, bounds
from envsdk.sandboxes.namespaces import socket_inside
from envsdk.sandboxes.owner import place_tag, this_owner
from envsdk.sandboxes.program import helper_path

if TYPE_CHECKING:
    from envsdk.sandboxes.bubblewrap import BubblewrapProvider

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")
_FSIZE, _CORE, _NPROC, _NOFILE, _AS = 1, 4, 6, 7, 9
_END_S, _START_S = 5.0, 30.0
_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi")
_MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/kmsg")


@dataclass(slots=True)
class Running:
    """The parts of a started sandbox that must be let go of again."""

    process: subprocess.Popen[bytes]
    folder: Path
    group: cgroups.Group | None
    errors: int
    ended: asyncio.Event
    ending: asyncio.Task[None] | None = None

    def inner_pid(self) -> int:
        """The sandbox's first process as it is numbered outside. Raises `SandboxError` where it has ended."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = self.process.pid
            return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])
        raise SandboxError(
            "the sandbox has no processes any more", code="channel_lost", hint="it has ended: start another"
        )

    def error_text(self) -> str:
        """What the launcher and bubblewrap wrote to stderr."""
        return os.pread(self.errors, 2000, 0).decode("utf-8", "replace").strip()


def arguments(
    spec: SandboxSpec, folder: Path, options: str, *, network: list[str], group: cgroups.Group | None, filter_fd: int
) -> list[str]:
    """The command line: launcher, then bubblewrap, then the helper as first process."""
    rootless = os.geteuid() != 0
    limit = bounds(spec.limits)
    words = [str(helper_path()), "launch"]
    if rootless:
        # A network is joined from inside the user namespace that owns it.
        words.append(f"userns={joined_user(spec.join)}" if spec.join else "user")
    if group is not None:
        words += [f"group={path}" for path in group.entries()]
    else:
        words.append(f"limit={_AS}:{limit.memory_mib << 20}")
        if rootless:  # counted in the sandbox's own user namespace; root's processes are counted nowhere
            words.append(f"limit={_NPROC}:{limit.pids}")
    words += [f"limit={_FSIZE}:{limit.disk_mib << 20}", f"limit={_CORE}:0", f"limit={_NOFILE}:{OPEN_FILES}"]
    # Volatile: nothing is flushed to disk for a sandbox's sake, neither by fsync inside nor when it ends.
    options += f",upperdir={folder}/u,workdir={folder}/w,volatile" + (",userxattr" if rootless else "")
    words += [f"cd={folder.parents[2]}", f"at={folder}/m", f"overlay={options}", "--"]
    words += [*_bubblewrap(), "--bind", f"{folder}/m", "/", *_mounts(), *network]
    words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]
    words += ["--as-pid-1", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"]
    for name in CAPABILITIES:
        words += ["--cap-add", f"CAP_{name}"]
    if filter_fd >= 0:
        words += ["--seccomp", str(filter_fd)]
    return [*words, "--", "/run/envsdk/helper"]


@functools.cache
def _bubblewrap() -> tuple[str, ...]:
    return (shutil.which("bwrap") or "bwrap",)


@functools.cache
def _mounts() -> tuple[str, ...]:
    """Kernel file systems with what reaches the host closed, and the helper, with a shell for images that have none."""
    words = ["--proc", "/proc", "--dev", "/dev"]
    for kept in filter(os.path.exists, _READ_ONLY):
        words += ["--ro-bind", kept, kept]
    for secret in filter(os.path.exists, _MASKED):
        words += ["--ro-bind", "/dev/null", secret]
    for folder in ("/run", "/run/envsdk"):  # where bubblewrap makes one by itself, the agent's user may not enter it
        words += ["--perms", "0755", "--dir", folder]
    words += ["--ro-bind", str(helper_path()), "/run/envsdk/helper"]
    busybox = next(filter(os.path.isfile, ("/bin/busybox", "/usr/bin/busybox")), None)
    return (*words, *(("--ro-bind", busybox, "/run/envsdk/busybox") if busybox else ()))


def _network(spec: SandboxSpec, folder: Path) -> list[str]:
    if spec.join:
        return ["--unshare-net", "--ro-bind", str(folder / "hosts"), "/etc/hosts"]
    if spec.network == "public":
        return ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
    return ["--unshare-net"]


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("envsdk")
    if content:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
    return fd


async def launch(spec: SandboxSpec, folder: Path, options: str, name: str) -> tuple[Running, Channel]:
    """Start a sandbox over an overlay with these mount options. Raises `SandboxError`; leaves nothing behind then."""
    network = _network(spec, folder)
    group = cgroups.create(name, bounds(spec.limits))
    program = seccomp.filter_program()
    filter_fd = _memory_file(program) if program else -1
    errors = _memory_file(b"")
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - vfork and exec, about a millisecond, and no thread to outlive
            arguments(spec, folder, options, network=network, group=group, filter_fd=filter_fd),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=errors,
            pass_fds=[filter_fd] if filter_fd >= 0 else [],
            start_new_session=True,
            env={},
        )
    except OSError as error:
        ours.close()
        os.close(errors)
        if group is not None:
            group.remove()
        raise SandboxError(
            f"bubblewrap could not be started: {error}", code="sandbox_start", hint="`envsdk doctor` says what it lacks"
        ) from error
    finally:
        theirs.close()
        if filter_fd >= 0:
            os.close(filter_fd)
    running = Running(process, folder, group, errors, asyncio.Event())
    loop = asyncio.get_running_loop()
    watch = os.pidfd_open(process.pid)

    def on_end() -> None:
        loop.remove_reader(watch)
        os.close(watch)
        process.wait()
        running.ended.set()

    loop.add_reader(watch, on_end)
    channel = Channel()
    try:
        await loop.create_unix_connection(lambda: channel, sock=ours)
    except BaseException:
        # Cancelled half-way: the helper ends with its link, and the rest of the box with the helper.
        ours.close()
        await asyncio.shield(end(running))
        raise
    return running, channel


async def end(running: Running) -> None:
    """Wait until the processes are gone (the channel is closed, so they end), then free what the sandbox held."""
    if running.ending is None:
        running.ending = asyncio.ensure_future(_end(running))
    await asyncio.shield(running.ending)


async def _end(running: Running) -> None:
    try:
        async with asyncio.timeout(_END_S):
            await running.ended.wait()
    except TimeoutError:
        for pid in running.group.members() if running.group else [running.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await running.ended.wait()
    until = time.monotonic() + _END_S
    while running.group is not None and not running.group.remove() and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(0.002)  # the kernel tells nobody when a group became empty
    os.close(running.errors)


class BubblewrapSandbox(KeptSandbox):
    """A running sandbox, which a snapshot freezes.

    A snapshot ends its processes: what it wrote becomes a layer, and its next use starts it anew on top of that; one
    that is closed after a fork is not started for nothing.
    """

    def __init__(
        self,
        provider: BubblewrapProvider,
        running: Running,
        spec: SandboxSpec,
        channel: Channel,
        *,
        layers: tuple[str, ...],
        image_env: dict[str, str],
        name: str = "",
    ) -> None:
        super().__init__(running.folder.name, spec, channel, image_env)
        self._provider = provider
        self._running = running
        self._name = name
        self._is_frozen = False
        self._waking = asyncio.Lock()
        self.layers = layers

    async def hello(self, *, timeout_s: float) -> None:
        await super().hello(timeout_s=timeout_s)
        if self.spec.join:
            await self._provider.plug_in(self.spec.join, self._running.inner_pid(), self._name)
        if self.spec.network == "allowlist":
            await self.open_way_out(self._running.inner_pid())

    @property
    def upper(self) -> Path:
        """What the sandbox wrote over its image, on the host's disk."""
        return self._running.folder / "u"

    async def dial(self, port: int) -> socket.socket:
        return await socket_inside(self._running.inner_pid(), "dial", port)

    async def written_mib(self) -> float:
        return await asyncio.to_thread(folder_mib, self.upper)

    async def counters(self) -> Counters:
        used = await self.written_mib()
        group = self._running.group
        counted = counters_from(group.read, group.version) if group is not None else Counters()
        return counted.model_copy(update={"disk_used_mib": used, "disk_quota_mib": self.disk_limit_mib})

    async def _engine_facts(self) -> Liveness:
        ended = self._running.ended.is_set()
        return Liveness(alive=False, main_exit_code=self._running.process.returncode if ended else None)

    async def snapshot(self) -> Snapshot:
        await self._freeze(snapshot_name())
        return self._provider.keep(self.layers)

    async def fork(self, n: int) -> list[Sandbox]:
        """``n`` sandboxes stacked on this one's file system; its processes end, and it goes on from there too."""
        await self._freeze(snapshot_name())
        return await self._provider.start_from(self._provider.keep(self.layers, until_unused=True), self.spec, n)

    async def _freeze(self, name: str) -> None:
        """Make a layer of what was written; of a sandbox that was not used since the last one, nothing new was."""
        async with self._waking:
            if self._is_frozen:
                return
            frozen = self._running
            if not await self._channel.retire():
                await end(frozen)
            # Nobody writes any more, so the mount that still stands over the folder for a moment does no harm.
            self.layers = (*self.layers, self._provider.store.freeze(self.upper, name))
            self._is_frozen = True
            self._provider.later(_clear(frozen))

    async def _link(self) -> Channel:
        if self._is_frozen and not self._closed:
            async with self._waking:
                if self._is_frozen and not self._closed:
                    await self._restart()
        return self._channel

    async def _restart(self) -> None:
        self._running, self._channel = await self._provider.start_layers(self.spec, self.layers)
        self._is_frozen = False
        if self._closed:  # meanwhile: nobody else will end this one
            self._channel.close()
            self._provider.later(_clear(self._running))
            return
        await self.hello(timeout_s=_START_S)

    async def detach_upper(self) -> str:
        """End the sandbox and keep what it wrote as a layer, whose name is returned."""
        await self._freeze(f"i{secrets.token_hex(8)}")
        self._closed = True
        self._provider.forget(self)
        return self.layers[-1]

    async def _remove(self) -> None:
        self._provider.forget(self)
        self._provider.later(_clear(self._running))

    async def wait_ended(self) -> None:
        """Until no process of it is left."""
        await self._running.ended.wait()


async def _clear(running: Running) -> None:
    await end(running)
    await asyncio.to_thread(remove_tree, running.folder)


def snapshot_name() -> str:
    """A layer that belongs to this process: the reaper removes it when the process is gone."""
    owner = this_owner()
    return f"s{place_tag(owner.place)}-{owner.pid}-{owner.started}-{secrets.token_hex(4)}"


def new_folder(parent: Path) -> Path:
    """A folder for one sandbox: ``u`` what it writes, ``w`` the overlay's own, ``m`` where its root is mounted."""
    folder = parent / f"b{secrets.token_hex(6)}"
    folder.mkdir()
    for name in "uwm":
        (folder / name).mkdir(mode=0o755)
    return folder

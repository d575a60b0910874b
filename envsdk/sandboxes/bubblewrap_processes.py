"""Starting a bubblewrap sandbox's processes, and their end: launcher, bubblewrap, and the helper as first process.

A start that fails leaves nothing behind; an end waits until no process of the sandbox is left.
"""

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

from envsdk.errors import SandboxError
from envsdk.sandboxes import cgroups, seccomp
from envsdk.sandboxes.base import SandboxSpec
from envsdk.sandboxes.bubblewrap_network import joined_user
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.limits import OPEN_FILES, bounds
from envsdk.sandboxes.program import helper_path

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE")
_FSIZE, _CORE, _NPROC, _NOFILE, _AS = 1, 4, 6, 7, 9
_END_S = 5.0
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


def new_folder(parent: Path) -> Path:
    """A folder for one sandbox: ``u`` what it writes, ``w`` the overlay's own, ``m`` where its root is mounted."""
    folder = parent / f"b{secrets.token_hex(6)}"
    folder.mkdir()
    for name in "uwm":
        (folder / name).mkdir(mode=0o755)
    return folder

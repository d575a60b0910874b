"""The network of an episode's services without an engine: a switch in a namespace of its own, a cable to each sandbox.

A waiting process holds a network namespace with a bridge. Every sandbox that joins has a namespace of its own with one
interface, the other end of which is plugged into that bridge: services have addresses and ports of their own, reach
each other by name, and nothing leads out. All of it goes with the holder and the sandboxes, which end with their owner.
An ordinary user's network belongs to a user namespace of his that its sandboxes join.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes.program import helper_path

_START_S = 10.0
_DOCTOR = "`envsdk doctor` says what this machine lacks for services; docker can run them too"
_BLOCK = "10.214.0"
_FIRST_NAMED, _FIRST_UNNAMED, _LAST = 2, 100, 254


@dataclass(slots=True)
class Network:
    """One network: ``names`` are reachable on it, ``path`` names its namespace, as `SandboxSpec.join` takes it."""

    names: tuple[str, ...]
    process: subprocess.Popen[bytes]
    path: str
    _free: list[int] = field(default_factory=lambda: list(range(_LAST, _FIRST_UNNAMED - 1, -1)))
    _cables: int = 0

    def hosts_text(self) -> str:
        """``/etc/hosts`` for a sandbox on the network."""
        lines = [f"{self._address(name)} {name}\n" for name in self.names]
        return "127.0.0.1 localhost\n::1 localhost\n" + "".join(lines)

    def _address(self, name: str) -> str:
        return f"{_BLOCK}.{_FIRST_NAMED + self.names.index(name)}"

    async def plug_in(self, pid: int, name: str) -> None:
        """Give the sandbox whose first process is ``pid`` its interface and address. Raises `SandboxError`."""
        if not name and not self._free:
            raise SandboxError(
                "the network has no address left", code="network_failed", hint="run fewer sandboxes beside one service"
            )
        address = self._address(name) if name else f"{_BLOCK}.{self._free.pop()}"
        self._cables += 1
        cable = f"v{self._cables}"
        await asyncio.to_thread(
            _configure,
            self.path,
            f"link add {cable} type veth peer name eth0 netns {pid}\nlink set {cable} master br0 up\n",
        )
        await asyncio.to_thread(
            _configure, f"/proc/{pid}/ns/net", f"addr add {address}/24 dev eth0\nlink set eth0 up\n", user=self.path
        )

    async def close(self) -> None:
        """End the holder; the namespace goes with its last sandbox."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(_START_S):
                await asyncio.to_thread(self.process.wait)
        except TimeoutError:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


def joined_user(network: str) -> str:
    """The user namespace that a network belongs to, by the network's path."""
    return f"{network.removesuffix('net')}user"


def _configure(network: str, commands: str, *, user: str = "") -> None:
    """Run `ip` commands in a network namespace. Raises `SandboxError` (``network_failed``)."""
    words = [str(helper_path()), "launch", *([f"userns={joined_user(user or network)}"] if os.geteuid() else [])]
    words += [f"net={network}", "--", _ip(), "-batch", "-"]
    done = subprocess.run(words, input=commands.encode(), capture_output=True, check=False, timeout=_START_S, env={})
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise SandboxError(f"the services' network could not be set up: {said}", code="network_failed", hint=_DOCTOR)


def _ip() -> str:
    found = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise PrerequisiteError(
            "services under bubblewrap need the program ip",
            code="services_unsupported",
            hint="apt-get install iproute2",
        )
    return found


async def open_network(names: Sequence[str]) -> Network:
    """Start a holder and its bridge: bubblewrap makes the namespace, and a reader waits until we close its input.

    Raises `SandboxError` (``network_failed``), `PrerequisiteError` (``services_unsupported``).
    """
    _ip()
    bubblewrap = shutil.which("bwrap") or "bwrap"
    words = [bubblewrap, "--bind", "/", "/", "--dev", "/dev", "--unshare-net", "--die-with-parent"]
    if os.geteuid():
        # The network must belong to a user namespace that can be joined: one of ours, not one of bubblewrap's own.
        words = [str(helper_path()), "launch", "user", "--", *words]
    process = subprocess.Popen(  # noqa: ASYNC220 - vfork and exec, about a millisecond
        [*words, "--", "/bin/sh", "-c", "echo ready; read -r _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={},
    )
    try:
        inner = await _holder(process)
        network = Network(tuple(names), process, f"/proc/{inner}/ns/net")
        await asyncio.to_thread(_configure, network.path, "link add br0 type bridge\nlink set br0 up\n")
    except BaseException:
        # Cancelled or refused half-way: a namespace that nobody closes must not stay.
        process.kill()
        process.communicate()
        raise
    return network


async def _holder(process: subprocess.Popen[bytes]) -> int:
    """The process that holds the namespace, once it says that it is there. Raises `SandboxError`."""
    assert process.stdout is not None
    line = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_START_S):
            line = await asyncio.to_thread(process.stdout.readline)
    inner = _child_of(process.pid) if line else None
    if inner is None:
        raise SandboxError("no network namespace could be made for the services", code="network_failed", hint=_DOCTOR)
    process.stdout.close()
    return inner


def _child_of(pid: int) -> int | None:
    """The process inside the namespace; bubblewrap itself stays outside of it where it forks, and is it where not."""
    with contextlib.suppress(OSError, ValueError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        if found:
            return int(found[0])
    return pid if os.path.exists(f"/proc/{pid}/ns/net") else None  # noqa: PTH110

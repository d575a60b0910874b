"""The network of an episode's services without an engine: one network namespace, held open by a waiting process.

All sandboxes that join it see the same loopback interface and nothing else, so services reach each other at 127.0.0.1
under their names; two of them cannot listen on the same port. The holder ends with its owner.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envsdk.errors import SandboxError
from envsdk.sandboxes.program import helper_path

_START_S = 10.0


@dataclass(slots=True)
class Holder:
    """The process that keeps a namespace alive; ``path`` names the namespace."""

    process: subprocess.Popen[bytes]
    path: str

    async def close(self) -> None:
        """End the holder; the namespace goes with its last sandbox."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(_START_S):
                await asyncio.to_thread(self.process.wait)
        except TimeoutError:
            self.process.kill()


@dataclass(frozen=True, slots=True)
class Network:
    """A network and the names that are reachable on it."""

    names: tuple[str, ...] = ()
    holder: Holder | None = None


def hosts_text(names: Sequence[str]) -> str:
    """``/etc/hosts`` for a sandbox on the network."""
    return "127.0.0.1 localhost\n::1 localhost\n" + "".join(f"127.0.0.1 {name}\n" for name in names)


async def open_holder() -> Holder:
    """Start a holder: bubblewrap brings the loopback up, and a reader waits until we close its input."""
    words = [
        shutil.which("bwrap") or "bwrap",
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--unshare-net",
        "--die-with-parent",
    ]
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
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_S):
            line = await asyncio.to_thread(process.stdout.readline)
    except TimeoutError:
        line = b""
    process.stdout.close()
    inner = _child_of(process.pid) if line else None
    if inner is None:
        process.kill()
        await asyncio.to_thread(process.wait)
        raise SandboxError("no network namespace could be made for the services", code="network_failed")
    return Holder(process, f"/proc/{inner}/ns/net")


def _child_of(pid: int) -> int | None:
    """The process inside the namespace; bubblewrap itself stays outside of it where it forks, and is it where not."""
    with contextlib.suppress(OSError, ValueError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        if found:
            return int(found[0])
    return pid if os.path.exists(f"/proc/{pid}/ns/net") else None  # noqa: PTH110

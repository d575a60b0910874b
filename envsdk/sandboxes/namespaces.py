"""TCP sockets inside a sandbox's network, held by its owner.

A socket stays in the network namespace that it was made in, whoever holds it. So the owner can listen at a sandbox's
own loopback interface, or connect to it, while the sandbox has no way out and no program of the owner's runs in it. It
takes what joining the namespace takes: root, or being the user whose user namespace it belongs to.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from typing import Literal

from envsdk.errors import SandboxError
from envsdk.sandboxes.program import helper_path

_WAIT_S = 10.0


async def socket_inside(pid: int, what: Literal["listen", "dial"], port: int) -> socket.socket:
    """A socket on 127.0.0.1:``port`` of the network that process ``pid`` is in: a listening one, or a connected one.

    Raises `SandboxError` (``network_failed``).
    """
    return await asyncio.to_thread(_fetch, pid, what, port)


def _fetch(pid: int, what: str, port: int) -> socket.socket:
    words = [str(helper_path()), "launch", *([f"userns=/proc/{pid}/ns/user"] if os.geteuid() else [])]
    words += [f"net=/proc/{pid}/ns/net", f"{what}={port}"]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(_WAIT_S)
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs.fileno(), stderr=subprocess.PIPE)
        theirs.close()
        try:
            _, found, _, _ = socket.recv_fds(ours, 1, 1)
        except OSError:
            found = []
        said = process.communicate()[1].decode("utf-8", "replace").strip()
    if not found:
        raise SandboxError(
            f"no socket could be had in the sandbox's network ({what} on port {port}): {said or 'no answer'}",
            code="network_failed",
            hint="the sandbox may have ended meanwhile: run it again",
        )
    return socket.socket(fileno=found[0])

"""A Unix socket on the owner's side that leads to a port inside a sandbox, for clients that speak to sockets by path.

Only the owner's user can open it; each connection to it is one connection inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from envsdk.errors import SandboxError
from envsdk.sandboxes.kept import KeptSandbox

_CHUNK = 64 << 10


@contextlib.asynccontextmanager
async def open_door(box: KeptSandbox, port: int) -> AsyncIterator[Path]:
    """Path of a Unix socket that leads to ``port`` at the loopback of ``box``, while the context is open."""
    under_way: set[asyncio.Task[None]] = set()

    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        try:
            inside = await asyncio.open_connection(sock=await box.dial(port))
            try:
                await asyncio.gather(_copy(reader, inside[1]), _copy(inside[0], writer))
            finally:
                inside[1].close()
        except (OSError, SandboxError):
            pass  # the client sees its connection end
        except asyncio.CancelledError:
            writer.transport.abort()  # the door closes; a cancelled handler is an error to asyncio's server
        finally:
            writer.close()
            under_way.discard(task)

    # The system's folder for temporary files, whatever its name here: a socket's path holds about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="envsdk-door-", dir="/tmp") as folder:
        path = Path(folder) / "s"
        server = await asyncio.start_unix_server(through, path)
        try:
            yield path
        finally:
            server.close()
            for task in list(under_way):
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()

"""An MCP server that runs in the agent's own box and speaks over its standard input and output: one message a line.

It runs as the agent's user, where the agent runs, as the task format has it: so the agent can see it and can end it,
and nothing that it says is evidence.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from envsdk.errors import SandboxError
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.spec.model import McpServer

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_LIFE_S = 7 * 24 * 3600.0
_LINE_BYTES = 16 << 20
_TAIL_BYTES = 300
_STDOUT = 1


@contextlib.asynccontextmanager
async def over_stdio(box: KeptSandbox, server: McpServer) -> AsyncIterator[TransportStreams]:
    """The server's messages and the way to send it some; it ends with the context.

    Raises:
        SandboxError: out of the context, where that fails because the server has ended (``mcp_lost``).
    """
    import anyio
    from mcp.shared.message import SessionMessage

    said_to, heard_of = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    sent, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    lines, words = _Lines(said_to), bytearray()

    def on_output(stream: int, data: bytes) -> None:
        if stream == _STDOUT:
            lines.take(data)
        else:
            words.extend(data)
            del words[:-_TAIL_BYTES]

    async def feed() -> AsyncIterator[bytes]:
        async for message in to_send:
            yield message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"

    run = box.exec(
        [server.command or "", *server.args],
        timeout_s=_LIFE_S,
        output_cap_bytes=1 << 40,
        feed=feed(),
        on_output=on_output,
    )
    running = asyncio.ensure_future(run)
    running.add_done_callback(lambda _: said_to.close())
    try:
        yield heard_of, sent
    except Exception as error:
        if not running.done() or running.cancelled() or running.exception() is not None:
            raise
        ended = running.result()
        how = f"signal {ended.signal}" if ended.signal else ended.exit_code
        wrote = words.decode("utf-8", "replace").strip() or "nothing"
        raise SandboxError(
            f"it ended with {how}; it wrote: {wrote}",
            code="mcp_lost",
            hint="run its command in the image by hand",
            where=server.name,
        ) from error
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for stream in (said_to, heard_of, sent, to_send):
            stream.close()


class _Lines:
    """Cuts what a server writes into messages; a line without an end is the end of it."""

    def __init__(self, into: Any) -> None:
        self._into = into
        self._rest = bytearray()

    def take(self, data: bytes) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        *whole, rest = (self._rest + data).split(b"\n")
        self._rest = bytearray(rest)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
            for line in (bytes(each) for each in whole if each.strip()):
                try:
                    message: SessionMessage | Exception = SessionMessage(
                        jsonrpc_message_adapter.validate_json(line, by_name=False)
                    )
                except Exception as error:  # noqa: BLE001 - whatever the box writes must not break its channel
                    message = error
                self._into.send_nowait(message)
            if len(rest) > _LINE_BYTES:
                self._into.close()

"""An MCP server that runs in the agent's own box and speaks over its standard input and output: one message a line.

It runs as the agent's user, where the agent runs, as the task format has it: so the agent can see it and can end it,
and nothing that it says is evidence. Nor may it fill this process's memory: what it writes ahead of being read is
bounded, and so is what it asks ahead of being answered; one that goes beyond is ended, and its `Ending` says so. Words
that are no message, and notifications, are dropped: nobody here listens to them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from envsdk.errors import SandboxError
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.spec.model import McpServer

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.types import JSONRPCMessage

LINE_BYTES = 16 << 20
BACKLOG_BYTES = 2 * LINE_BYTES
QUESTIONS = 64
_LIFE_S = 7 * 24 * 3600.0
_TAIL_BYTES = 300
_STDOUT = 1
_HELD_BYTES = 100  # what a line costs in memory beside its own bytes


@dataclass(slots=True)
class Ending:
    """Why a server is gone, in words; empty until it is."""

    why: str = ""


@contextlib.asynccontextmanager
async def over_stdio(box: KeptSandbox, server: McpServer, ending: Ending) -> AsyncIterator[TransportStreams]:
    """The server's messages and the way to send it some; it ends with the context.

    Raises:
        SandboxError: out of the context, where that fails because the server has ended (``mcp_lost``).
    """
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCError, JSONRPCResponse

    said_to, heard_of = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    lines, words = Lines(ending), bytearray()
    questions = Questions(lines)

    def on_output(stream: int, data: bytes) -> None:
        if stream == _STDOUT:
            lines.take(data)
        else:
            words.extend(data)
            del words[:-_TAIL_BYTES]

    async def feed() -> AsyncIterator[bytes]:
        async for message in to_send:
            if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                questions.open -= 1
            yield message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"

    run = box.exec(
        [server.command or "", *server.args],
        timeout_s=_LIFE_S,
        output_cap_bytes=1 << 40,
        feed=feed(),
        on_output=on_output,
    )
    running = asyncio.ensure_future(run)
    running.add_done_callback(lambda _: lines.end(_how(running, words)))
    reading = asyncio.ensure_future(_read(lines, questions, said_to))
    reading.add_done_callback(lambda _: running.cancel())  # all was read, or it is not to be read any more
    try:
        yield heard_of, sent
    except Exception as error:
        if not ending.why:
            raise
        raise SandboxError(
            ending.why, code="mcp_lost", hint="run its command in the image by hand", where=server.name
        ) from error
    finally:
        reading.cancel()
        running.cancel()
        await asyncio.gather(reading, running, return_exceptions=True)
        for stream in (said_to, heard_of, sent, to_send):
            stream.close()


def _how(running: asyncio.Task[Any], words: bytearray) -> str:
    """How a server's process ended; empty where it was ended from here."""
    if running.cancelled():
        return ""
    if (error := running.exception()) is not None:
        return str(error)
    ended = running.result()
    how = f"signal {ended.signal}" if ended.signal else ended.exit_code
    return f"it ended with {how}; it wrote: {words.decode('utf-8', 'replace').strip() or 'nothing'}"


async def _read(lines: Lines, questions: Questions, said_to: Any) -> None:
    """Hand on what is for the session, until the end; then the session hears that the connection is closed."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCNotification, JSONRPCRequest

    with said_to, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
        async for line in lines:
            message = _message(line)
            if message is None or isinstance(message, JSONRPCNotification):
                await asyncio.sleep(0)  # a thousand of them must not keep others waiting
                continue
            if isinstance(message, JSONRPCRequest):
                questions.add()
            await said_to.send(SessionMessage(message))


def _message(line: bytes) -> JSONRPCMessage | None:
    from mcp.types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except Exception:  # noqa: BLE001 - whatever the box writes must not break its channel
        return None


class Lines:
    """Cuts what a server writes into lines and holds those that nobody has read yet, up to ``BACKLOG_BYTES``."""

    def __init__(self, ending: Ending) -> None:
        self._ending = ending
        self._rest = bytearray()
        self._waiting: deque[bytes] = deque()
        self._held_bytes = 0
        self._is_over = False
        self._changed = asyncio.Event()

    def take(self, data: bytes) -> None:
        """Take what came; after the end it is dropped."""
        if self._is_over:
            return
        *whole, rest = (self._rest + data).split(b"\n")
        self._rest = bytearray(rest)
        for line in filter(bytes.strip, map(bytes, whole)):
            self._waiting.append(line)
            self._held_bytes += len(line) + _HELD_BYTES
        if len(rest) > LINE_BYTES:
            self.give_up(f"it wrote a line of more than {LINE_BYTES >> 20} MiB")
        elif self._held_bytes > BACKLOG_BYTES:
            self.give_up(f"it wrote {BACKLOG_BYTES >> 20} MiB faster than they could be read")
        self._changed.set()

    def end(self, why: str) -> None:
        """Nothing more will come; what waits can still be read."""
        self._is_over = True
        self._rest.clear()
        self._ending.why = self._ending.why or why
        self._changed.set()

    def give_up(self, why: str) -> None:
        """Nothing more is to be read, not even what waits."""
        self._waiting.clear()
        self.end(why)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            while self._waiting:
                line = self._waiting.popleft()
                self._held_bytes -= len(line) + _HELD_BYTES
                yield line
            if self._is_over:
                return
            self._changed.clear()
            await self._changed.wait()


@dataclass(slots=True)
class Questions:
    """What a server has asked and not been answered: each holds a task of the session's."""

    lines: Lines
    open: int = 0

    def add(self) -> None:
        """One more."""
        self.open += 1
        if self.open > QUESTIONS:
            self.lines.give_up(f"it asked {QUESTIONS} things and read no answer")

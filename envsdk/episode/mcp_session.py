"""A session with one MCP server, held by a task of its own.

Where a transport fails, the protocol's library cancels the task that opened it. That must not be the episode's, which
may be waiting for a model just then: so each session is opened, kept and left by a task that does nothing else, and a
call ends when that task does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from envsdk.episode.mcp_stdio import Ending, over_stdio
from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes.base import Sandbox
from envsdk.sandboxes.door import open_door
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.services import ServiceGroup
from envsdk.spec.model import McpServer, Task

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

CALL_S = 60.0
_CONNECT_S = 20.0
_LEAVE_S = 5.0


@dataclass(frozen=True, slots=True)
class Connection:
    """A server that has answered, and what it lists; ``is_the_agents``: it runs in the agent's box."""

    name: str
    is_the_agents: bool
    session: ClientSession
    listed: tuple[ListedTool, ...]
    holder: asyncio.Task[None]
    ending: Ending

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """What the server's tool answers.

        Raises:
            SandboxError: the server is gone (``mcp_lost``).
            mcp.MCPError: it refused the call, or gave no answer in time.
        """
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        calling = asyncio.ensure_future(self.session.call_tool(tool, arguments, read_timeout_seconds=CALL_S))
        try:
            either: set[asyncio.Future[Any]] = {calling, self.holder}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return calling.result()
        except asyncio.InvalidStateError as error:
            raise self._lost("its connection ended") from error
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise self._lost(error.message) from error
            raise
        except Exception as error:  # the client's transports raise what their libraries raise
            raise self._lost(str(error)) from error
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)

    def _lost(self, why: str) -> SandboxError:
        return SandboxError(
            f"MCP server {self.name!r} is gone: {self.ending.why or why}",
            code="mcp_lost",
            hint="see what it wrote before it ended, and whether its box has memory enough",
            where=self.name,
        )


@contextlib.asynccontextmanager
async def connect(
    server: McpServer, task: Task, services: ServiceGroup | None, box: Sandbox | None
) -> AsyncIterator[Connection]:
    """A session with a task's server, while the context is open.

    Raises:
        PrerequisiteError: it cannot be reached from here (``mcp_unsupported``), or the package is missing.
        SandboxError: it does not answer (``mcp_unreachable``).
    """
    ending = Ending()
    way = _stdio(server, task, box, ending) if server.transport == "stdio" else _http(server, task, services)
    _need_package(server, task)
    opened: asyncio.Future[tuple[ClientSession, tuple[ListedTool, ...]]] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()
    holder = asyncio.ensure_future(_hold(way, opened, leave))
    try:
        either: set[asyncio.Future[Any]] = {opened, holder}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            raise SandboxError(
                f"MCP server {server.name!r} at {server.url or server.command} does not answer: {_cause(holder)}",
                code="mcp_unreachable",
                hint="run its command in the image by hand; give a service a health check, and look at its log",
                where=task.slug,
            )
        yield Connection(server.name, server.transport == "stdio", *opened.result(), holder, ending)
    finally:
        leave.set()
        await asyncio.wait({holder}, timeout=_LEAVE_S)
        holder.cancel()
        # A server that is gone cannot be left in good order.
        await asyncio.gather(holder, return_exceptions=True)


async def _hold(
    way: contextlib.AbstractAsyncContextManager[TransportStreams], opened: asyncio.Future[Any], leave: asyncio.Event
) -> None:
    from mcp import ClientSession

    async with way as streams, ClientSession(*streams, read_timeout_seconds=_CONNECT_S) as session:
        await session.initialize()
        opened.set_result((session, tuple((await session.list_tools()).tools)))
        await leave.wait()


@contextlib.asynccontextmanager
async def _over_http(server: McpServer, inside: KeptSandbox, port: int) -> AsyncIterator[TransportStreams]:
    import httpx2
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    async with contextlib.AsyncExitStack() as open_ones:
        door = await open_ones.enter_async_context(open_door(inside, port))

        def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
            transport = httpx2.AsyncHTTPTransport(uds=str(door))
            return httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout or CALL_S, auth=auth)

        if server.transport == "sse":
            way: Any = sse_client(str(server.url), headers=dict(server.headers), httpx_client_factory=client)
        else:
            http = await open_ones.enter_async_context(client(dict(server.headers)))
            way = streamable_http_client(str(server.url), http_client=http)
        streams = await open_ones.enter_async_context(way)
        yield streams[0], streams[1]


def _need_package(server: McpServer, task: Task) -> None:
    try:
        import httpx2  # noqa: F401
        import mcp  # noqa: F401
    except ModuleNotFoundError as error:
        raise PrerequisiteError(
            f"MCP server {server.name!r} needs the module {error.name}",
            code="extra_missing",
            hint="pip install 'envsdk[mcp]'",
            where=task.slug,
        ) from error


def _cause(holder: asyncio.Task[None]) -> str:
    error = None if holder.cancelled() else holder.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if error is not None else "it closed the connection"


def _http(
    server: McpServer, task: Task, services: ServiceGroup | None
) -> contextlib.AbstractAsyncContextManager[TransportStreams]:
    url = urlsplit(server.url or "")
    names = {service.name for service in task.spec.services}
    if url.scheme != "http" or url.hostname not in names or services is None:
        raise PrerequisiteError(
            f"MCP server {server.name!r} is no service of the task's",
            code="mcp_unsupported",
            hint=f"declare a service that runs it, and url = http://SERVICE:PORT/PATH with one of: {', '.join(names)}",
            where=task.slug,
        )
    inside = services.sandbox(url.hostname)
    assert isinstance(inside, KeptSandbox)
    return _over_http(server, inside, url.port or 80)


def _stdio(
    server: McpServer, task: Task, box: Sandbox | None, ending: Ending
) -> contextlib.AbstractAsyncContextManager[TransportStreams]:
    # Between steps every process in the box is ended, and a server among them would be gone.
    if not isinstance(box, KeptSandbox) or task.spec.steps or not server.command:
        raise PrerequisiteError(
            f"MCP server {server.name!r} cannot run in the agent's box",
            code="mcp_unsupported",
            hint="give it a command, in a task of one step, on docker or bubblewrap; or declare a service that runs it",
            where=task.slug,
        )
    return over_stdio(box, server, ending)

"""A task's MCP servers as tools of the model: connected once an episode, listed in its prompt, called by its replies.

A server is a service of the task, named by the host of its URL (``http://SERVICE:PORT/PATH``), so that what the model
calls runs in a sandbox of its own beside the model's. Tool names are the servers'; where two servers have one name, the
server's name and a dot stand before it. A reply that calls holds one object between the words below:

    <tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>

Not supported: servers that run inside the agent's box (``stdio``), and those of other machines.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes.door import open_door
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.sandboxes.services import ServiceGroup
from envsdk.spec.model import McpServer, Task

if TYPE_CHECKING:
    from mcp import ClientSession

CALL = re.compile(r"<tool_call>(?P<call>.*?)(?:</tool_call>|\Z)", re.DOTALL)
CALL_S = 60.0
_CONNECT_S = 20.0


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: ``schema`` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    session: ClientSession
    server_name: str


@dataclass(frozen=True, slots=True)
class Call:
    """What came of one call. ``is_fit``: it named a tool and its arguments fit; ``failed``: the tool said so."""

    text: str
    is_fit: bool
    failed: bool = False


@dataclass(slots=True)
class Toolbox:
    """The tools of one episode, by name."""

    tools: dict[str, Tool] = field(default_factory=dict)

    def prompt(self) -> str:
        """What the model is told of its tools; empty without any."""
        if not self.tools:
            return ""
        lines = [
            json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.schema})
            for tool in self.tools.values()
        ]
        how = 'Call one by <tool_call>{"name": NAME, "arguments": {...}}</tool_call> as your whole reply.'
        return "\n".join(["You have these tools:", *lines, how])

    async def call(self, text: str) -> Call:
        """Do what the inside of a ``<tool_call>`` asks for. What is wrong with it is told, not raised.

        Raises `SandboxError` (``mcp_lost``) where the server is gone.
        """
        try:
            asked = json.loads(text)
            name, arguments = asked["name"], asked.get("arguments", {})
        except (ValueError, KeyError, TypeError):
            return Call('a call is one JSON object with "name" and "arguments"', is_fit=False)
        tool = self.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return Call(f"no tool is called {name!r}; there are: {', '.join(self.tools)}", is_fit=False)
        if why := _misfit(arguments, tool.schema):
            return Call(f"the arguments of {name} do not fit: {why}", is_fit=False)
        return await _called(tool, arguments)


def _misfit(arguments: object, schema: dict[str, Any]) -> str:
    import jsonschema

    if not isinstance(arguments, dict):
        return "they are no object"
    worst = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(arguments))
    return "" if worst is None else f"{worst.json_path}: {worst.message}"


async def _called(tool: Tool, arguments: dict[str, Any]) -> Call:
    from mcp import MCPError

    try:
        result = await tool.session.call_tool(tool.server_name, arguments, read_timeout_seconds=CALL_S)
    except MCPError as error:
        return Call(str(error), is_fit=True, failed=True)
    except Exception as error:  # the client's transports raise what their libraries raise
        raise SandboxError(f"the server of tool {tool.name} is gone: {error}", code="mcp_lost") from error
    parts = [getattr(part, "text", None) or f"[{part.type}]" for part in result.content]
    return Call("\n".join(parts), is_fit=True, failed=bool(result.is_error))


@contextlib.asynccontextmanager
async def open_toolbox(task: Task, services: ServiceGroup | None) -> AsyncIterator[Toolbox]:
    """The task's tools, connected. To be entered and left by one and the same asyncio task.

    Raises:
        PrerequisiteError: a server is not one that can be reached (``mcp_unsupported``), or the package is missing.
        SandboxError: a server does not answer (``mcp_unreachable``).
    """
    servers = task.spec.container.mcp_servers if task.spec.container else ()
    async with contextlib.AsyncExitStack() as open_ones:
        box = Toolbox()
        for server in servers:
            session, listed = await open_ones.enter_async_context(_session(server, task, services))
            for tool in listed:
                name = tool.name if tool.name not in box.tools else f"{server.name}.{tool.name}"
                box.tools[name] = Tool(name, tool.description or "", dict(tool.input_schema), session, tool.name)
        yield box


@contextlib.asynccontextmanager
async def _session(
    server: McpServer, task: Task, services: ServiceGroup | None
) -> AsyncIterator[tuple[ClientSession, list[Any]]]:
    """A server's session, and what it lists."""
    service, port = _place(server, task)
    try:
        import httpx2
        from mcp import ClientSession
        from mcp.client.sse import sse_client
        from mcp.client.streamable_http import streamable_http_client
    except ModuleNotFoundError as error:
        raise PrerequisiteError(
            f"MCP server {server.name!r} needs the module {error.name}",
            code="extra_missing",
            hint="pip install 'envsdk[mcp]'",
            where=task.slug,
        ) from error
    assert services is not None
    inside = services.sandbox(service)
    assert isinstance(inside, KeptSandbox)
    open_ones = contextlib.AsyncExitStack()
    try:
        door = await open_ones.enter_async_context(open_door(inside, port))

        def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
            transport = httpx2.AsyncHTTPTransport(uds=str(door))
            return httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout or CALL_S, auth=auth)

        try:
            if server.transport == "sse":
                way: Any = sse_client(str(server.url), headers=dict(server.headers), httpx_client_factory=client)
            else:
                http = await open_ones.enter_async_context(client(dict(server.headers)))
                way = streamable_http_client(str(server.url), http_client=http)
            streams = await open_ones.enter_async_context(way)
            session = ClientSession(streams[0], streams[1], read_timeout_seconds=_CONNECT_S)
            await open_ones.enter_async_context(session)
            await session.initialize()
            listed = (await session.list_tools()).tools
        except Exception as error:  # the client's transports raise what their libraries raise
            raise SandboxError(
                f"MCP server {server.name!r} at {server.url} does not answer: {_cause(error)}",
                code="mcp_unreachable",
                hint="give the service a health check, and look at its log",
                where=task.slug,
            ) from error
        yield session, list(listed)
    finally:
        with contextlib.suppress(Exception):  # a server that is gone cannot be left in good order
            await open_ones.aclose()


def _cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _place(server: McpServer, task: Task) -> tuple[str, int]:
    url = urlsplit(server.url or "")
    names = {service.name for service in task.spec.services}
    if server.transport == "stdio" or url.scheme != "http" or url.hostname not in names:
        raise PrerequisiteError(
            f"MCP server {server.name!r} is no service of the task's",
            code="mcp_unsupported",
            hint=f"declare a service that runs it, and url = http://SERVICE:PORT/PATH with one of: {', '.join(names)}",
            where=task.slug,
        )
    return str(url.hostname), url.port or 80

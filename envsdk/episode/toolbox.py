"""A task's MCP servers as tools of the model: connected once an episode, listed in its prompt, called by its replies.

A server is a service of the task, named by the host of its URL (``http://SERVICE:PORT/PATH``), so that what the model
calls runs in a sandbox of its own beside the model's; or a command in the model's own (``stdio``), which the model can
end: there a lost server is a failed call, and not the machinery's failure. Tool names are the servers'; where two
servers have one name, the server's name and a dot stand before it. A reply that calls holds one object between the
words below:

    <tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>

Not supported: servers of other machines.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from envsdk.episode.mcp_session import Connection, connect
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Sandbox
from envsdk.sandboxes.services import ServiceGroup
from envsdk.spec.model import Task

CALL = re.compile(r"<tool_call>(?P<call>.*?)(?:</tool_call>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: ``schema`` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    connection: Connection
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
        result = await tool.connection.call(tool.server_name, arguments)
    except MCPError as error:
        return Call(str(error), is_fit=True, failed=True)
    except SandboxError as error:
        if not tool.connection.is_the_agents:
            raise
        return Call(error.message, is_fit=True, failed=True)
    parts = [getattr(part, "text", None) or f"[{part.type}]" for part in result.content]
    return Call("\n".join(parts), is_fit=True, failed=bool(result.is_error))


@contextlib.asynccontextmanager
async def open_toolbox(task: Task, services: ServiceGroup | None, agents_box: Sandbox | None) -> AsyncIterator[Toolbox]:
    """The task's tools, connected.

    Raises:
        PrerequisiteError: a server is not one that can be reached (``mcp_unsupported``), or the package is missing.
        SandboxError: a server does not answer (``mcp_unreachable``).
    """
    servers = task.spec.container.mcp_servers if task.spec.container else ()
    async with contextlib.AsyncExitStack() as open_ones:
        box = Toolbox()
        for server in servers:
            connection = await open_ones.enter_async_context(connect(server, task, services, agents_box))
            for tool in connection.listed:
                name = tool.name if tool.name not in box.tools else f"{server.name}.{tool.name}"
                box.tools[name] = Tool(name, tool.description or "", dict(tool.input_schema), connection, tool.name)
        yield box

"""A server made with the protocol's own package: ``python official_mcp_server.py TRANSPORT PORT``.

It listens everywhere, as a service does: one bound to the loopback would refuse requests that name another host.
"""

import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

SERVER = MCPServer("official")
KEPT: dict[str, str] = {}


@SERVER.tool()
def put(key: str, text: str) -> str:
    """Keep a text under a key."""
    KEPT[key] = text
    return "kept"


@SERVER.tool()
def get(key: str) -> str:
    """The text under a key."""
    return KEPT.get(key, "nothing")


@SERVER.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("it failed")


if __name__ == "__main__":
    if sys.argv[1] == "sse":
        SERVER.run("sse", host="0.0.0.0", port=int(sys.argv[2]))
    else:
        json_response = sys.argv[1] == "json"
        SERVER.run("streamable-http", host="0.0.0.0", port=int(sys.argv[2]), json_response=json_response)

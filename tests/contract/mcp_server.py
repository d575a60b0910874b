"""A tiny MCP server of the standard library alone, for a box that has nothing else.

Streamable HTTP with answers as JSON; with the word ``stdio``, a message a line.

Tools: ``put`` keeps a text, ``get`` gives it back, ``fail`` fails, ``die`` ends the server.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEPT: dict[str, str] = {}
TEXT = {"type": "string"}
TOOLS = [
    {"name": name, "description": about, "inputSchema": {"type": "object", "properties": fields, "required": [*fields]}}
    for name, about, fields in (
        ("put", "Keep a text under a key.", {"key": TEXT, "text": TEXT}),
        ("get", "The text under a key.", {"key": TEXT}),
        ("fail", "Fails.", {}),
        ("die", "Ends the server.", {}),
    )
]


def called(name: str, arguments: dict[str, str]) -> dict[str, Any]:
    if name == "die":
        os._exit(3)
    if name == "put":
        KEPT[arguments["key"]] = arguments["text"]
    said = {"put": "kept", "get": KEPT.get(arguments.get("key", ""), "nothing"), "fail": "it failed"}[name]
    return {"content": [{"type": "text", "text": said}], "isError": name == "fail"}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    parameters = asked.get("params") or {}
    if asked["method"] == "initialize":
        about = {"name": "tiny", "version": "1"}
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if asked["method"] == "tools/list":
        return {"tools": TOOLS}
    if asked["method"] == "tools/call":
        return called(parameters["name"], parameters.get("arguments") or {})
    return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = (
            b""
            if "id" not in asked
            else json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}).encode()
        )
        self.send_response(200 if said else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()


def converse() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["stdio"]:
        print("a word that is no message", flush=True)
        converse()
        sys.exit()
    ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()

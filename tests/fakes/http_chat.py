"""A chat server on a local port that answers what it was told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ChatServer:
    """``answers`` are (status, body) in order, the last one repeated; ``requests`` is what came."""

    answers: list[tuple[int, Any]]
    models: list[str] = field(default_factory=lambda: ["tiny"])
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""


def said(text: str, *, tokens: int = 3, finish: str = "stop") -> tuple[int, dict[str, Any]]:
    """A good answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return 200, {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": tokens}}


@contextmanager
def chat_server(*answers: tuple[int, Any], models: list[str] | None = None) -> Iterator[ChatServer]:
    """Serve until the block ends."""
    server = ChatServer(list(answers), **({} if models is None else {"models": models}))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"data": [{"id": name} for name in server.models]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
            status, content = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            self._send(status, content)

        def _send(self, status: int, content: Any) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            return None

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()

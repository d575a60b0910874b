"""The way out of a sandbox whose network is an allow-list: an HTTP proxy at its loopback, kept by its owner.

The sandbox has a network namespace with a loopback and nothing else, so whatever does not ask the proxy reaches nobody.
The proxy serves ``CONNECT host:port`` (TLS and anything else a client tunnels) and plain ``http://`` requests. It looks
at the host that is asked for, resolves it itself, and refuses what the list does not name with status 403.

    example.org        that host, any port            *.example.org     every host under it, not itself
    example.org:443    that port only                 10.0.0.7          an address, as it is written

Not promised: what an allowed host does with a request (one that serves many names serves all of them).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

PORT = 3128
CONNECTIONS = 64
_HEAD_BYTES = 32 << 10
_HEAD_S, _CONNECT_S = 30.0, 20.0
_CHUNK = 64 << 10
_PROXY_URL = f"http://127.0.0.1:{PORT}"
_HOP = (b"proxy-", b"connection:", b"keep-alive:")


def proxy_variables() -> dict[str, str]:
    """What tells programs in the sandbox of the proxy; its own servers are asked directly."""
    ways = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), _PROXY_URL)
    return {**ways, "no_proxy": "localhost,127.0.0.1,::1", "NO_PROXY": "localhost,127.0.0.1,::1"}


def is_allowed(host: str, port: int, allowed: Sequence[str]) -> bool:
    """Whether the list names this host at this port."""
    wanted = host.lower().rstrip(".")
    for entry in allowed:
        name, at = _parted(entry.lower(), 0)
        fits = wanted.endswith(name[1:]) and wanted != name[2:] if name.startswith("*.") else wanted == name.rstrip(".")
        if fits and at in {0, port}:
            return True
    return False


def _parted(text: str, default: int) -> tuple[str, int]:
    """``(host, port)`` of ``host``, ``host:port``, ``[v6]:port``. Raises `ValueError`."""
    parts = urlsplit(f"//{text}") if text.count(":") < 2 or text.startswith("[") else urlsplit(f"//[{text}]")
    if not parts.hostname or parts.username is not None:
        raise ValueError(f"no host in {text!r}")
    return parts.hostname, parts.port or default


class Egress:
    """One sandbox's proxy, on a listening socket inside it. ``refused`` are hosts that were asked for in vain."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = tuple(allowed)
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self.refused: set[str] = set()

    async def open(self, listener: socket.socket) -> None:
        """Serve on this socket, which is closed with the proxy."""
        listener.setblocking(False)
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_HEAD_BYTES)

    async def close(self) -> None:
        """Hang up every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._under_way) >= CONNECTIONS:
            writer.transport.abort()
            return
        self._under_way.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # either side went away, or never said what it wants
        except asyncio.CancelledError:
            writer.transport.abort()  # by `close`; a cancelled handler is an error to asyncio's server
        finally:
            await _hang_up(writer)
            self._under_way.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            host, port, forwarded = parse_request(head)
        except ValueError as error:
            await _answer(writer, "400 Bad Request", str(error))
            return
        if not is_allowed(host, port, self._allowed):
            if len(self.refused) < CONNECTIONS:
                self.refused.add(f"{host}:{port}")
            await _answer(writer, "403 Forbidden", f"{host}:{port} is not among the task's allowed hosts")
            return
        try:
            async with asyncio.timeout(_CONNECT_S):
                from_host, to_host = await asyncio.open_connection(host, port)
        except (OSError, TimeoutError) as error:
            await _answer(writer, "502 Bad Gateway", f"{host}:{port} cannot be reached: {error}")
            return
        try:
            if forwarded:
                to_host.write(forwarded)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_copy(reader, to_host), _copy(from_host, writer))
        finally:
            await _hang_up(to_host)


def parse_request(head: bytes) -> tuple[str, int, bytes]:
    """``(host, port, what to send there)`` of a proxy request; nothing is to be sent for a tunnel.

    A plain request is the connection's only one: what a client sent after it under another name would go to the same
    host. Raises `ValueError` for what is no proxy request.
    """
    first, *fields = head[:-4].split(b"\r\n")
    words = first.decode("latin-1").split(" ")
    if len(words) != 3:
        raise ValueError("this is an HTTP proxy")
    method, target, version = words
    if method == "CONNECT":
        return *_parted(target, 443), b""
    url = urlsplit(target)
    if url.scheme != "http" or not url.netloc:
        raise ValueError("this is an HTTP proxy: ask for http://host/path, or CONNECT host:port")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    kept = [field for field in fields if not field.lower().startswith(_HOP)]
    lines = [f"{method} {path} {version}".encode("latin-1"), *kept, b"Connection: close"]
    return *_parted(url.netloc, 80), b"\r\n".join(lines) + b"\r\n\r\n"


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close once what was written is gone, and do not wait for ever for a reader who does not read."""
    writer.close()
    try:
        async with asyncio.timeout(_HEAD_S):
            await writer.wait_closed()
    except OSError:
        return
    finally:
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):  # the other side may have hung up both ways
        writer.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str, why: str) -> None:
    body = f"envsdk: {why}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode("latin-1", "replace") + body)
    await writer.drain()

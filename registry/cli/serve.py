"""``envsdk registry serve``: the registry as a web site and an API."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated

import typer

from envsdk.errors import StoreError
from registry.cli.options import RegistryOption, open_local


def serve(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    worker: Annotated[bool, typer.Option(help="Do background jobs beside it, in a process of their own.")] = True,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every write, whatever its token.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Ask for a token to read, too; any scope reads.")] = False,
    registry: RegistryOption = None,
) -> None:
    """Serve pages and API until interrupted. Reading is open, unless --private; writing needs a token.

    Example: envsdk registry serve --port 8000
    """
    import uvicorn

    from registry.web.app import create_app

    with open_local(registry) as opened, _listen(host, port) as listener:
        typer.echo(f"http://{host}:{listener.getsockname()[1]}/", err=True)
        config = uvicorn.Config(create_app(opened, read_only=read_only, private=private), log_level="warning")
        with _worker(opened.url) if worker and not read_only else nullcontext():
            uvicorn.Server(config).run(sockets=[listener])


# The worker reads its standard input, which nobody writes to: its end is the site's end, also where that was killed.
# An interrupt can be lost where Python cannot raise, in the middle of an import, and an interpreter can hang in its own
# end: the alarm, which no Python code handles, ends it then.
_WORKER = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born ignoring it
def follow():
    sys.stdin.read()
    signal.alarm(30)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=follow, daemon=True).start()
from envsdk.cli.entry import main
main()
"""


@contextmanager
def _worker(url: str) -> Iterator[None]:
    """A worker for as long as the site is up, however the site ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WORKER, "registry", "work", "--registry", url], stdin=subprocess.PIPE
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise StoreError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            code="port_in_use",
            hint="give another --port, or 0 for a free one",
        ) from error

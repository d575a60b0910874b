"""``envsdk registry serve``: the registry as a web site and an API."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from envsdk.errors import StoreError
from registry.cli.options import RegistryOption, open_local


def serve(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    registry: RegistryOption = None,
) -> None:
    """Serve pages and API until interrupted. Reading is open; writing needs a token.

    Example: envsdk registry serve --port 8000
    """
    import uvicorn

    from registry.web.app import create_app

    with open_local(registry) as opened, _listen(host, port) as listener:
        typer.echo(f"http://{host}:{listener.getsockname()[1]}/", err=True)
        config = uvicorn.Config(create_app(opened), log_level="warning")
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise StoreError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            code="port_in_use",
            hint="give another --port, or 0 for a free one",
        ) from error

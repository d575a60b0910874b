"""The Docker engine, as far as sandboxes need it: blocking SDK calls in threads, errors turned into `SandboxError`.

One engine object is shared by all sandboxes of a provider. The attach stream is taken over as a plain socket and read
by the event loop, so that neither a thread nor an engine call is spent per command.
"""

from __future__ import annotations

import asyncio
import functools
import io
import os
import socket
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import docker
import docker.constants
import docker.errors
import requests.exceptions

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes.channel import Channel
from envsdk.sandboxes.owner import labels

P = ParamSpec("P")
T = TypeVar("T")
_THREADS = 16
_CALL_S = 60


class Multiplexed(asyncio.Protocol):
    """Strips the engine's stream headers (``stream[1] 0 0 0 length[4]``) and hands stdout to the channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._rest = bytearray()
        self.stderr = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._channel.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._channel.connection_lost(exc)

    def pause_writing(self) -> None:
        self._channel.pause_writing()

    def resume_writing(self) -> None:
        self._channel.resume_writing()

    def data_received(self, data: bytes) -> None:
        rest = self._rest
        rest += data
        at = 0
        while len(rest) - at >= 8:
            length = int.from_bytes(rest[at + 4 : at + 8], "big")
            if len(rest) - at < 8 + length:
                break
            payload = bytes(rest[at + 8 : at + 8 + length])
            if rest[at] == 1:
                self._channel.data_received(payload)
            else:
                self.stderr += payload[-4096:]
            at += 8 + length
        del rest[:at]


class Engine:
    """Async face of one Docker daemon. `connect` answers for its being there."""

    def __init__(self, client: docker.APIClient) -> None:
        self.api = client
        about = client.info()
        self.storage_dir = str(about.get("DockerRootDir") or "")
        self.cgroup_driver = str(about.get("CgroupDriver") or "")
        self._socket = _socket_path()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="envsdk-docker")

    @classmethod
    def connect(cls, *, timeout_s: int = _CALL_S) -> Engine:
        """Raises `PrerequisiteError` (``no_docker``) where no daemon answers."""
        try:
            _knock(_socket_path(), timeout_s)
            client = _client(timeout_s)
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
            raise PrerequisiteError(
                f"no Docker engine answers: {error}",
                code="no_docker",
                hint="start one (as root: make setup), or use the bubblewrap sandbox",
            ) from error
        return cls(client)

    def another_client(self, *, timeout_s: int) -> docker.APIClient:
        """A connection of its own to the same engine, for a call that takes long."""
        return _client(timeout_s, version=self.api.api_version)

    def listens_since(self) -> float | None:
        """When the engine made the socket that it listens on, in Unix seconds; `None` where that cannot be seen.

        An engine that restarts makes a new one, unless something else holds the socket for it: a later time than a
        sandbox's start proves a restart, an earlier one proves nothing.
        """
        path = self._socket
        try:
            return os.stat(path).st_ctime if path else None  # noqa: PTH116 - a socket
        except OSError:
            return None

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an SDK call in a thread. Raises `SandboxError`: ``engine_unreachable`` or ``engine_refused``."""
        loop = asyncio.get_running_loop()
        try:
            work = functools.partial(function, *args, **kwargs)
            return await loop.run_in_executor(self._threads, _knocked, self._socket, work)
        except docker.errors.APIError as error:
            raise _refused(error) from error
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
            raise SandboxError(
                f"the Docker engine did not answer: {error}",
                code="engine_unreachable",
                hint="start it; see `docker info`",
            ) from error

    async def attach(self, container: str) -> Channel:
        """The channel over the attach stream of a container that has not started yet."""
        taking = asyncio.ensure_future(self.call(self._attach_socket, container))
        try:
            raw = await asyncio.shield(taking)
        except asyncio.CancelledError:
            # The thread cannot be stopped: what it brings is let go of when it comes.
            taking.add_done_callback(_let_go)
            raise
        channel = Channel()
        stream = Multiplexed(channel)
        loop = asyncio.get_running_loop()
        if raw.family == socket.AF_UNIX:
            await loop.create_unix_connection(lambda: stream, sock=raw)
        else:
            await loop.create_connection(lambda: stream, sock=raw)
        return channel

    def _attach_socket(self, container: str) -> socket.socket:
        if self.api.base_url.startswith(("https://", "http+docker://ssh")):
            raise PrerequisiteError(
                f"the engine at {self.api.base_url} is reached over TLS or SSH, which the kept channel cannot use",
                code="engine_transport",
                hint="forward its socket to this machine and set DOCKER_HOST=unix://...",
            )
        taken = self.api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        raw = socket.socket(fileno=socket.dup(taken.fileno()))
        taken._response.close()  # noqa: SLF001 - the SDK keeps the response there so that its own copy stays open
        taken.close()
        raw.setblocking(False)
        return raw

    async def put_file(self, container: str, folder: str, files: dict[str, bytes]) -> None:
        """Place executable files in a container's folder, started or not."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(content), 0o755
                tar.addfile(info, io.BytesIO(content))
        await self.call(self.api.put_archive, container, folder, archive.getvalue())

    async def remove(self, container: str) -> None:
        """Kill and remove a container with its anonymous volumes; one that is gone already is fine."""
        try:
            await self.call(self.api.remove_container, container, v=True, force=True)
        except SandboxError as error:
            if error.code not in {"no_such_object", "removal_in_progress"}:
                raise

    async def networks(self) -> list[dict[str, Any]]:
        """Networks that envsdk made."""
        return list(await self.call(self.api.networks, filters={"label": ["envsdk"]}))

    def close(self) -> None:
        """Let go of the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.api.close()


def _socket_path() -> str:
    """Where the engine's socket lies; empty where it is reached over a network."""
    url = str(docker.utils.kwargs_from_env().get("base_url") or docker.constants.DEFAULT_UNIX_SOCKET)
    kind, _, path = url.partition("://")
    return path if kind.endswith("unix") else ""


def _knock(path: str, timeout_s: float) -> None:
    """Raises OSError where nobody listens on the engine's socket. The SDK would leave its own socket open then."""
    if path:
        with socket.socket(socket.AF_UNIX) as knock:
            knock.settimeout(timeout_s)
            knock.connect(path)


def _knocked(path: str, call: Callable[[], T]) -> T:
    _knock(path, _CALL_S)
    return call()


def _let_go(taking: asyncio.Future[socket.socket]) -> None:
    if not taking.cancelled() and taking.exception() is None:
        taking.result().close()


def _client(timeout_s: int, *, version: str = "auto") -> docker.APIClient:
    settings = docker.utils.kwargs_from_env()
    return docker.APIClient(timeout=timeout_s, version=version, num_pools=_THREADS, **settings)


def _refused(error: docker.errors.APIError) -> SandboxError:
    status = error.response.status_code if error.response is not None else 0
    text = str(error.explanation or error)
    code, hint = "engine_refused", "its log says more: `journalctl -u docker`"
    if status == 404:
        code, hint = "no_such_object", "somebody removed it meanwhile: run it again, which makes or fetches it anew"
    elif "already in progress" in text:
        code, hint = "removal_in_progress", "nothing: the engine is removing it already"
    elif "no space left" in text:
        code, hint = "host_disk_full", "free space there: `envsdk images prune`, `docker system df`"
    return SandboxError(f"the Docker engine refused: {text}", code=code, hint=hint)


def new_labels(**extra: str) -> dict[str, str]:
    """The owner's labels and more, each under ``envsdk.``."""
    return {**labels(), **{f"envsdk.{name}": value for name, value in extra.items()}}

"""Services beside the agent: containers of one task on an internal network, healthy before the agent starts.

    async with start_services(task, provider) as group:
        box = await provider.acquire(SandboxSpec(image=..., network="internal", join=group.network))

Each service runs its command as a child of the helper in a sandbox of its own, so its log is kept (the last part of
it) and its end is known. Services are fresh for each group: episodes never share one. Health is asked inside the
service, by the declared command, or by whether its port is listened to.

They start in the order given, each once those it comes ``after`` are healthy.

Not promised: that one that ended is started again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.frozen import Frozen
from envsdk.sandboxes.base import Sandbox, SandboxProvider, SandboxSpec
from envsdk.sandboxes.kept import KeptSandbox
from envsdk.spec.environ import resolve_env
from envsdk.spec.model import HealthCheck, ServiceSpec, Task

LOG_BYTES = 1 << 20
_LIFE_S = 7 * 24 * 3600.0
_LISTEN = "0A"


class ImageConfig(Frozen):
    """What an image says about how to run it; ``command`` begins with the ``entrypoint``."""

    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    user: str = "root"
    workdir: str = "/"


class Networked(Protocol):
    """What a back end offers, beyond `SandboxProvider`, to run services."""

    async def open_network(self, names: Sequence[str]) -> str:
        """An internal network on which these names will be reachable; returns what `SandboxSpec.join` takes."""
        ...

    async def close_network(self, network: str) -> None: ...

    async def acquire_named(self, spec: SandboxSpec, name: str, *, timeout_s: float) -> KeptSandbox:
        """A sandbox on ``spec.join`` that others there reach as ``name``."""
        ...

    async def image_config(self, image: str) -> ImageConfig: ...


class Service:
    """One running service: its sandbox, its log, how it ended."""

    def __init__(self, spec: ServiceSpec, box: KeptSandbox, config: ImageConfig) -> None:
        self.name = spec.name
        self.box = box
        self.exit_code: int | None = None
        self._spec = spec
        self._log = bytearray()
        self._dropped = 0
        self._env = resolve_env(spec.env, os.environ)
        self._run = asyncio.ensure_future(self._serve(_command(spec, config), config))

    async def _serve(self, command: str | Sequence[str], config: ImageConfig) -> None:
        ended = await self.box.exec(
            command,
            timeout_s=_LIFE_S,
            cwd=config.workdir,
            user=config.user,
            env=self._env,
            output_cap_bytes=1 << 40,
            on_output=self._keep,
        )
        self.exit_code = ended.exit_code if ended.exit_code is not None else 128 + (ended.signal or 0)

    def _keep(self, _stream: int, data: bytes) -> None:
        self._log += data
        if len(self._log) > 2 * LOG_BYTES:
            self._dropped += len(self._log) - LOG_BYTES
            del self._log[:-LOG_BYTES]

    def log(self) -> bytes:
        """The last part of what the service wrote, stdout and stderr as they came."""
        kept = bytes(self._log[-LOG_BYTES:])
        lost = self._dropped + len(self._log) - len(kept)
        return (f"[{lost} bytes before this are not kept]\n".encode() if lost else b"") + kept

    async def until_healthy(self) -> None:
        """Raises `SandboxError` (``service_exited``, ``service_unhealthy``)."""
        check = self._spec.healthcheck or HealthCheck(command="")
        for _ in range(check.retries):
            if self._run.done():
                raise self._failure("service_exited", f"its command ended with {self.exit_code}")
            if await self._is_healthy(check):
                return
            await asyncio.sleep(check.interval_s)
        raise self._failure("service_unhealthy", f"not healthy after {check.retries} checks")

    async def _is_healthy(self, check: HealthCheck) -> bool:
        if check.command:
            return (await self.box.exec(check.command, timeout_s=check.timeout_s, user="root")).ok
        if self._spec.port is None:
            return True
        return self._spec.port in await listening_ports(self.box)

    def _failure(self, code: str, what: str) -> SandboxError:
        tail = self.log()[-500:].decode("utf-8", "replace").strip()
        return SandboxError(f"service {self.name!r}: {what}; it wrote: {tail or 'nothing'}", code=code, where=self.name)

    async def close(self) -> None:
        """End it; the log stays readable."""
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)
        await self.box.close()


async def listening_ports(box: KeptSandbox) -> set[int]:
    """TCP ports that something in the sandbox's network listens on, read from the kernel."""
    ports: set[int] = set()
    for text in await box.peek(["/proc/net/tcp", "/proc/net/tcp6"]):
        for line in (text or b"").decode("ascii", "replace").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == _LISTEN:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


class ServiceGroup:
    """A task's services, running inside ``async with``. ``network`` is empty for a task without services."""

    def __init__(self, task: Task, provider: SandboxProvider) -> None:
        self._task = task
        self._provider = provider
        self._services: list[Service] = []
        self.network = ""

    async def __aenter__(self) -> Self:
        specs = self._task.spec.services
        if not specs:
            return self
        host = _networked(self._provider)
        self.network = await host.open_network([spec.name for spec in specs])
        try:
            async with asyncio.timeout(self._task.spec.budget.setup_s + self._task.spec.budget.acquire_s):
                images = await asyncio.gather(*(self._image(spec) for spec in specs))
                for spec, image in zip(specs, images, strict=True):
                    await asyncio.gather(*(self._named(name).until_healthy() for name in spec.after))
                    config = await host.image_config(image)
                    box = await host.acquire_named(
                        _sandbox_spec(spec, image, self.network, config),
                        spec.name,
                        timeout_s=self._task.spec.budget.acquire_s,
                    )
                    self._services.append(Service(spec, box, config))
                await asyncio.gather(*(service.until_healthy() for service in self._services))
        except BaseException as error:
            await asyncio.shield(self._close())
            if isinstance(error, TimeoutError):
                raise SandboxError(
                    f"the services of {self._task.slug} did not come up in time",
                    code="service_unhealthy",
                    hint="raise setup_s in the budget, or let them start faster",
                    where=self._task.slug,
                ) from error
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(self._close())

    def logs(self) -> dict[str, bytes]:
        """What each service wrote; also after the group was closed."""
        return {service.name: service.log() for service in self._services}

    def sandbox(self, name: str) -> Sandbox:
        """The sandbox of a service, for verifiers that look at its state. Raises `KeyError`."""
        return self._named(name).box

    def _named(self, name: str) -> Service:
        return {service.name: service for service in self._services}[name]

    async def _image(self, spec: ServiceSpec) -> str:
        folder: Path = self._task.root / "environment" / (spec.build or f"services/{spec.name}")
        return await self._provider.ensure_image(folder, spec.image, build_s=self._task.spec.budget.build_s)

    async def _close(self) -> None:
        await asyncio.gather(*(service.close() for service in self._services))
        if self.network:
            network, self.network = self.network, ""
            await _networked(self._provider).close_network(network)


def start_services(task: Task, provider: SandboxProvider) -> ServiceGroup:
    """The task's services as an async context; entering raises `SandboxError` where one does not come up."""
    return ServiceGroup(task, provider)


def _command(spec: ServiceSpec, config: ImageConfig) -> str | tuple[str, ...]:
    if spec.command is not None:
        return spec.command
    return config.command if spec.args is None else (*config.entrypoint, *spec.args)


def _sandbox_spec(spec: ServiceSpec, image: str, network: str, config: ImageConfig) -> SandboxSpec:
    return SandboxSpec(
        image=image, user="root", workdir=config.workdir, limits=spec.limits, network="internal", join=network
    )


def _networked(provider: SandboxProvider) -> Networked:
    if not all(hasattr(provider, name) for name in ("open_network", "acquire_named", "image_config")):
        raise PrerequisiteError(f"sandbox back end {provider.name!r} cannot run services", code="services_unsupported")
    return provider  # type: ignore[return-value]

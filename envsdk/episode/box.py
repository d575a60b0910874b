"""The box of an episode: image made ready, services up, sandbox acquired and healthy, each on its own clock.

What fails here is the machinery's: `StartError` says in which phase.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from envsdk.episode.clocks import EpisodeClock
from envsdk.errors import EnvsdkError, SandboxError
from envsdk.files.output import decode
from envsdk.sandboxes.base import Sandbox, SandboxProvider, Snapshot
from envsdk.sandboxes.services import ServiceGroup, start_services
from envsdk.spec.model import HealthCheck, Task
from envsdk.verifying.pristine import box_spec, built_image, dockerfile_folder, set_up_image

LOG_TAIL_BYTES = 4 << 10


class StartError(SandboxError):
    """The box could not be made ready; ``phase`` is one of pull, build, acquire, setup."""

    def __init__(self, error: EnvsdkError, *, phase: str) -> None:
        super().__init__(error.message, code=error.code, hint=error.hint, where=error.where)
        self.phase = phase


@dataclass(frozen=True, slots=True)
class Box:
    """What an episode acts in: the sandbox, and its services with the id of their network."""

    sandbox: Sandbox
    network: str = ""
    services: ServiceGroup | None = None

    def service_logs(self) -> dict[str, str]:
        """The last part of what each service wrote."""
        logs = self.services.logs() if self.services is not None else {}
        return {name: decode(log[-LOG_TAIL_BYTES:]) for name, log in logs.items()}


async def open_box(
    task: Task,
    provider: SandboxProvider,
    clock: EpisodeClock,
    closing: AsyncExitStack,
    *,
    prepared: Snapshot | None = None,
) -> Box:
    """The episode's box, with the files of ``prepared`` where given. Everything started is ended by ``closing``.

    Raises:
        StartError: with the phase that failed.
    """
    with clock.phase("build"):
        try:
            built = await built_image(task, provider)
        except EnvsdkError as error:
            builds = dockerfile_folder(task) and error.code != "image_not_found"  # else the base is what is missing
            raise StartError(error, phase="build" if builds else "pull") from error
    image = await _set_up(task, provider, built, clock)
    with clock.phase("acquire"):
        try:
            services = await _services(task, provider, closing)
            network = services.network if services is not None else ""
            spec = box_spec(task, image, network=network)
            if prepared is not None:
                [sandbox] = await provider.start_from(prepared, spec)
            else:
                sandbox = await provider.acquire(spec, timeout_s=task.spec.budget.acquire_s)
        except EnvsdkError as error:
            raise StartError(error, phase="acquire") from error
    closing.push_async_callback(sandbox.close)
    clock.stamp("acquired")
    if task.spec.container is not None and task.spec.container.healthcheck is not None:
        with clock.phase("setup"):
            await until_healthy(sandbox, task.spec.container.healthcheck, task.spec.budget.setup_s)
    return Box(sandbox, network, services)


async def _set_up(task: Task, provider: SandboxProvider, image: str, clock: EpisodeClock) -> str:
    if task.spec.container is None or not task.spec.container.setup:
        return image
    with clock.phase("setup"):
        try:
            return await set_up_image(task, provider, image)
        except EnvsdkError as error:
            raise StartError(error, phase="setup") from error


async def _services(task: Task, provider: SandboxProvider, closing: AsyncExitStack) -> ServiceGroup | None:
    if not task.spec.services:
        return None
    return await closing.enter_async_context(start_services(task, provider))


async def until_healthy(box: Sandbox, check: HealthCheck, budget_s: float) -> None:
    """Ask until the check passes, within its tries and ``budget_s``. Raises `StartError` (``healthcheck_failed``)."""
    deadline = time.monotonic() + budget_s
    last = b""
    for _ in range(check.retries):
        result = await box.exec(check.command, timeout_s=check.timeout_s)
        if result.ok:
            return
        last = result.stderr or result.stdout
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(check.interval_s)
    said = last[-300:].decode("utf-8", "replace")
    error = SandboxError(
        f"the container's health check never passed: {said}",
        code="healthcheck_failed",
        hint="run its command in the image by hand",
        where=box.id,
    )
    raise StartError(error, phase="setup")

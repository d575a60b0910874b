"""The box of an episode: image made ready, services up, sandbox acquired and healthy, each on its own clock.

What fails here is the machinery's: `StartError` says in which phase.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

from envsdk.episode.clocks import EpisodeClock
from envsdk.errors import EnvsdkError, SandboxError
from envsdk.sandboxes.base import Sandbox, SandboxProvider
from envsdk.spec.model import HealthCheck, Task
from envsdk.verifying.pristine import box_spec, dockerfile_folder, image_of


class StartError(SandboxError):
    """The box could not be made ready; ``phase`` is one of pull, build, acquire, setup."""

    def __init__(self, error: EnvsdkError, *, phase: str) -> None:
        super().__init__(error.message, code=error.code, hint=error.hint, where=error.where)
        self.phase = phase


async def open_box(
    task: Task,
    provider: SandboxProvider,
    clock: EpisodeClock,
    closing: AsyncExitStack,
    *,
    prepared: Sandbox | None = None,
) -> tuple[Sandbox, str]:
    """The episode's box and the id of its services' network. Everything started is ended by ``closing``.

    Raises:
        StartError: with the phase that failed.
    """
    if prepared is not None:
        closing.push_async_callback(prepared.close)
        clock.stamp("acquired")
        return prepared, prepared.spec.join
    with clock.phase("build"):
        try:
            image = await image_of(task, provider)
        except EnvsdkError as error:
            raise StartError(error, phase="build" if dockerfile_folder(task) else "pull") from error
    with clock.phase("acquire"):
        try:
            network = await _services(task, provider, closing)
            box = await provider.acquire(box_spec(task, image, network=network), timeout_s=task.spec.budget.acquire_s)
        except EnvsdkError as error:
            raise StartError(error, phase="acquire") from error
    closing.push_async_callback(box.close)
    clock.stamp("acquired")
    if task.spec.container is not None and task.spec.container.healthcheck is not None:
        with clock.phase("setup"):
            await _until_healthy(box, task.spec.container.healthcheck, task.spec.budget.setup_s)
    return box, network


async def _services(task: Task, provider: SandboxProvider, closing: AsyncExitStack) -> str:
    if not task.spec.services:
        return ""
    from envsdk.sandboxes.services import start_services

    group: Any = await closing.enter_async_context(start_services(task, provider))
    return str(group.network)


async def _until_healthy(box: Sandbox, check: HealthCheck, budget_s: float) -> None:
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
    error = SandboxError(f"the container's health check never passed: {said}", code="healthcheck_failed", where=box.id)
    raise StartError(error, phase="setup")

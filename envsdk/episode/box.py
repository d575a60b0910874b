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
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes.base import Limits, Sandbox, SandboxProvider, SandboxSpec
from envsdk.spec.model import HealthCheck, Task


class StartError(SandboxError):
    """The box could not be made ready; ``phase`` is one of pull, build, acquire, setup."""

    def __init__(self, error: EnvsdkError, *, phase: str) -> None:
        super().__init__(error.message, code=error.code, hint=error.hint, where=error.where)
        self.phase = phase


async def image_of(task: Task, provider: SandboxProvider) -> str:
    """The pinned reference of a task's image. Raises `StartError` (pull or build)."""
    container = task.spec.container
    environment = task.root / "environment"
    builds = (environment / "Dockerfile").is_file()
    wanted = container.image if container and container.image else None if builds else BASE_IMAGE
    try:
        return await provider.ensure_image(environment if builds else None, wanted, build_s=task.spec.budget.build_s)
    except EnvsdkError as error:
        raise StartError(error, phase="build" if builds else "pull") from error


def sandbox_spec(task: Task, image: str, *, network: str = "") -> SandboxSpec:
    """The agent's box; ``network`` is the id of the network of the episode's services."""
    container = task.spec.container
    mode = container.network if container else "none"
    joins = bool(network)
    return SandboxSpec(
        image=image,
        user=task.spec.agent.user,
        workdir=container.workdir if container else "/app",
        env=tuple(sorted(container.env.items())) if container else (),
        limits=container.limits if container else Limits(),
        network="internal" if joins and mode in {"none", "internal"} else "none" if mode == "internal" else mode,
        allowed_hosts=container.allowed_hosts if container else (),
        join=network if joins else "",
    )


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
        image = await image_of(task, provider)
    with clock.phase("acquire"):
        try:
            network = await _services(task, provider, closing)
            box = await provider.acquire(
                sandbox_spec(task, image, network=network), timeout_s=task.spec.budget.acquire_s
            )
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

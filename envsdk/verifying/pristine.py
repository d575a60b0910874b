"""The boxes of a task, from its pristine image: the agent's, and the one its verifier is run in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from envsdk.errors import PrerequisiteError
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes.base import Limits, SandboxProvider, SandboxSpec
from envsdk.spec.environ import resolve_env
from envsdk.spec.model import ContainerSpec, Task

Role = Literal["agent", "verifier"]


def dockerfile_folder(task: Task, role: Role = "agent") -> Path | None:
    """The folder whose Dockerfile makes the box: ``tests/`` for a verifier with its own, else ``environment/``."""
    folders = ("tests", "environment") if role == "verifier" else ("environment",)
    return next((task.root / name for name in folders if (task.root / name / "Dockerfile").is_file()), None)


async def image_of(task: Task, provider: SandboxProvider, role: Role = "agent") -> str:
    """The pinned reference of the pristine image: built where need be, and set up; each once for equal tasks.

    Raises:
        SandboxError: it cannot be built or found, or its set-up failed (``setup_failed``).
    """
    image = await built_image(task, provider, role)
    return image if _is_own(task, role) else await set_up_image(task, provider, image)


def _is_own(task: Task, role: Role) -> bool:
    """The verifier brings an image of its own, which the agent never meets."""
    folder, container = dockerfile_folder(task, role), task.spec.verifier.container
    has_folder = folder is not None and folder.name == "tests"
    return role == "verifier" and (has_folder or (container is not None and container.image is not None))


async def set_up_image(task: Task, provider: SandboxProvider, image: str) -> str:
    """The image with the container's ``setup`` run in it; the image itself where there is none.

    Raises:
        SandboxError: the set-up failed (``setup_failed``).
        PrerequisiteError: the back end cannot keep its result (``setup_unsupported``).
    """
    container = task.spec.container
    if container is None or not container.setup:
        return image
    prepare = getattr(provider, "prepare", None)
    if prepare is None:
        raise PrerequisiteError(
            f"sandbox back end {provider.name!r} cannot run a container's set-up once and keep it",
            code="setup_unsupported",
            hint="use docker or bubblewrap, or put the set-up into environment/Dockerfile",
            where=task.slug,
        )
    return str(await prepare(box_spec(task, image), container.setup, timeout_s=task.spec.budget.setup_s))


async def built_image(task: Task, provider: SandboxProvider, role: Role = "agent") -> str:
    """The pinned reference of the image before its set-up; the base image for a task that names none.

    Raises:
        SandboxError: it cannot be built or found.
    """
    container, folder = _container(task, role), dockerfile_folder(task, role)
    named = container.image if container is not None else None
    if role == "verifier" and named is None and task.spec.container is not None:
        named = task.spec.container.image
    own = role == "verifier" and folder is not None and folder.name == "tests"
    image = None if own else named or (None if folder is not None else BASE_IMAGE)
    return await provider.ensure_image(None if image else folder, image, build_s=task.spec.budget.build_s)


def _container(task: Task, role: Role) -> ContainerSpec | None:
    """What the box is like: the verifier's own where it declares one, else the agent's."""
    return (task.spec.verifier.container if role == "verifier" else None) or task.spec.container


def box_spec(task: Task, image: str, *, role: Role = "agent", network: str = "") -> SandboxSpec:
    """What to start. ``network`` is that of the episode's services; a verifier joins it only if it declares so.

    Raises:
        UsageError: the container's environment takes a name from this machine that is not set (``env_missing``).
    """
    container = _container(task, role)
    mode = task.spec.verifier.network if role == "verifier" else container.network if container else "none"
    joins = bool(network) and (mode == "internal" or (role == "agent" and mode == "none"))
    return SandboxSpec(
        image=image,
        user=task.spec.agent.user,
        workdir=container.workdir if container else "/app",
        env=tuple(sorted(resolve_env(container.env, os.environ).items())) if container else (),
        limits=container.limits if container else Limits(),
        network="internal" if joins else "none" if mode == "internal" else mode,
        allowed_hosts=container.allowed_hosts if container else (),
        join=network if joins else "",
    )

"""Images before they are needed: what the tasks' boxes start from is built once, ahead of the first episode.

Otherwise the first group of each task would wait for a build that all its members start at once. Idle sandboxes are the
provider's pools' business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envsdk.episode.agents import Agent
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from envsdk.verifying.pristine import image_of


async def build_images(
    tasks: Sequence[Task], agent: Agent, provider: SandboxProvider, *, say: Callable[[str], None]
) -> dict[str, int]:
    """Make the image of every task whose agent acts in a box; returns how many tasks start from each.

    A build that fails is said and left to the episodes, whose records will carry the cause.
    """
    found: dict[str, int] = {}
    for task in tasks:
        if not agent.needs_sandbox(task):
            continue
        try:
            image = await image_of(task, provider)
        except SandboxError as error:
            say(f"no image for {task.slug}: {error}")
            continue
        found[image] = found.get(image, 0) + 1
    if found:
        say(f"{sum(found.values())} tasks act in boxes of {len(found)} images")
    return found

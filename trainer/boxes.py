"""Boxes before they are needed: images are built ahead of the first episode, and some boxes stand ready all the time.

Otherwise the first group of each task would wait for a build that all its members start at once, and every group for
its boxes to start. How many idle boxes a machine can bear is the provider's pools' business: they bound what is asked
here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from envsdk.episode.agents import Agent
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import SandboxProvider, SandboxSpec
from envsdk.spec.model import Task
from envsdk.verifying.pristine import box_spec, image_of

_AGAIN_S = 60.0  # pools keep what was asked for about two minutes


async def build_images(
    tasks: Sequence[Task], agent: Agent, provider: SandboxProvider, *, say: Callable[[str], None]
) -> Counter[SandboxSpec]:
    """Make the image of every task whose agent acts in a box; returns how many tasks start from each kind of box.

    A box that joins the network of an episode's services is of no kind: it cannot be started ahead. A build that fails
    is said and left to the episodes, whose records will carry the cause.
    """
    kinds: Counter[SandboxSpec] = Counter()
    images: Counter[str] = Counter()
    for task in tasks:
        if not agent.needs_sandbox(task):
            continue
        try:
            image = await image_of(task, provider)
        except SandboxError as error:
            say(f"no image for {task.slug}: {error}")
            continue
        images[image] += 1
        if not task.spec.services:
            kinds[box_spec(task, image)] += 1
    if images:
        say(f"{images.total()} tasks act in boxes of {len(images)} images")
    return kinds


async def keep_warm(
    kinds: Counter[SandboxSpec], provider: SandboxProvider, *, boxes: int, say: Callable[[str], None]
) -> None:
    """Have boxes stand ready until cancelled: ``boxes`` in all, for the kinds that most tasks need.

    One that cannot be started is said and left to the episodes.
    """
    common = [kind for kind, _ in kinds.most_common(max(1, boxes // 4))]
    while common:
        for kind in common:
            try:
                await provider.prewarm(kind, boxes // len(common))
            except SandboxError as error:
                say(f"no box stands ready: {error}")
        await asyncio.sleep(_AGAIN_S)

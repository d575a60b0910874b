"""Boxes before they are needed: images are built ahead of the first episode, boxes started ahead of their group.

Otherwise the first group of each task would wait for a build that all its members start at once, and every group for
its boxes to start, an agent's and a verifier's each. Which groups come next is known (`trainer.look_ahead`), so what is
started is used. How many idle boxes a machine can bear is the business of the provider's pools, which bound what is
asked here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from envsdk.episode.agents import Agent
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import SandboxProvider, SandboxSpec
from envsdk.spec.model import Task
from envsdk.verifying.pristine import box_spec, image_of

_AGAIN_S = 60.0  # pools keep what was asked for about two minutes

Needs = Mapping[str, Counter[SandboxSpec]]
"""Boxes of one episode that can be started ahead, by the task's digest."""


async def build_images(
    tasks: Sequence[Task], agent: Agent, provider: SandboxProvider, *, say: Callable[[str], None]
) -> Needs:
    """Make the images of every task whose episodes need a box; returns what they need.

    A box that joins the network of an episode's services cannot be started ahead, and is not among them. A build that
    fails is said and left to the episodes, whose records will carry the cause.
    """
    needs: dict[str, Counter[SandboxSpec]] = {}
    for task in tasks:
        try:
            if boxes := await _boxes(task, agent, provider):
                needs[task.digests.task] = boxes
        except SandboxError as error:
            say(f"no image for {task.slug}: {error}")
    if needs:
        images = {kind.image for boxes in needs.values() for kind in boxes}
        say(f"{len(needs)} tasks act in boxes of {len(images)} images")
    return needs


async def _boxes(task: Task, agent: Agent, provider: SandboxProvider) -> Counter[SandboxSpec]:
    boxes: Counter[SandboxSpec] = Counter()
    if not agent.needs_sandbox(task):
        return boxes
    image = await image_of(task, provider)
    if task.spec.services:
        return boxes
    boxes[box_spec(task, image)] += 1
    if task.spec.verifier.kind == "script" and task.spec.verifier.mode == "separate":
        boxes[box_spec(task, await image_of(task, provider, "verifier"), role="verifier")] += 1
    return boxes


async def keep_warm(
    needs: Needs,
    provider: SandboxProvider,
    *,
    upcoming: Callable[[], Iterable[Task]],
    members: int,
    moved: asyncio.Event,
    say: Callable[[str], None],
) -> None:
    """Have boxes stand ready until cancelled: those of ``members`` episodes of each upcoming task.

    Asks again whenever ``moved`` is set, and now and then. A box that cannot be started is said and left to the
    episodes.
    """
    asked: set[SandboxSpec] = set()
    while needs:
        moved.clear()
        wanted: Counter[SandboxSpec] = Counter()
        for task in upcoming():
            for kind, n in needs.get(task.digests.task, Counter()).items():
                wanted[kind] += n * members
        over = asked - wanted.keys()
        for error in await asyncio.gather(*(_ask(provider, kind, wanted[kind]) for kind in [*wanted, *over])):
            if error is not None:
                say(f"no box stands ready: {error}")
        asked = set(wanted)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), _AGAIN_S)


async def _ask(provider: SandboxProvider, kind: SandboxSpec, n: int) -> SandboxError | None:
    try:
        await provider.prewarm(kind, n)
    except SandboxError as error:
        return error
    return None

"""Images are made once each, before the first episode, for the tasks that act in a box."""

from __future__ import annotations

from envsdk.errors import SandboxError
from tests.fakes.episodes import make_task
from trainer.boxes import build_images


class Agent:
    """Takes a box for every task but number 0."""

    def needs_sandbox(self, task) -> bool:
        return task.slug != "task-0"


class Provider:
    def __init__(self, broken: bool = False) -> None:
        self.asked = 0
        self.broken = broken

    async def ensure_image(self, environment, image, *, build_s: float) -> str:
        self.asked += 1
        if self.broken and self.asked == 1:
            raise SandboxError("the Dockerfile has a fault")
        return image


async def test_tasks_that_need_no_box_have_no_image_made() -> None:
    provider = Provider()
    found = await build_images([make_task(0), make_task(1), make_task(2)], Agent(), provider, say=lambda _: None)
    assert provider.asked == 2
    assert list(found.values()) == [2]


async def test_a_build_that_fails_is_said_and_the_others_are_made() -> None:
    said = []
    found = await build_images([make_task(1), make_task(2)], Agent(), Provider(broken=True), say=said.append)
    assert list(found.values()) == [1]
    assert "task-1" in said[0]

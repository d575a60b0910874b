"""Images are made once each, before the first episode, for the tasks that act in a box."""

from __future__ import annotations

import asyncio
from collections import Counter

from envsdk.errors import SandboxError
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes.base import SandboxSpec
from tests.fakes.episodes import make_task
from trainer import boxes
from trainer.boxes import build_images, keep_warm


class Agent:
    """Takes a box for every task but number 0."""

    def needs_sandbox(self, task) -> bool:
        return task.slug != "task-0"


class Provider:
    def __init__(self, broken: bool = False) -> None:
        self.asked = 0
        self.warmed: list[tuple[str, int]] = []
        self.broken = broken

    async def ensure_image(self, environment, image, *, build_s: float) -> str:
        self.asked += 1
        if self.broken and self.asked == 1:
            raise SandboxError("the Dockerfile has a fault")
        return image

    async def prewarm(self, spec, n: int) -> None:
        self.warmed.append((spec.image, n))
        if self.broken:
            raise SandboxError("the engine is down")


async def warmed(provider: Provider, kinds: Counter, *, boxes: int = 8, rounds: int = 1) -> list[str]:
    """Keep warm for some rounds; returns what was said."""
    said: list[str] = []
    task = asyncio.create_task(keep_warm(kinds, provider, boxes=boxes, say=said.append))
    while len(provider.warmed) < rounds:  # noqa: ASYNC110 - the loop is what lets the task run
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return said


async def test_the_boxes_most_tasks_need_stand_ready() -> None:
    provider = Provider()
    kinds = Counter({SandboxSpec(image=name): count for name, count in [("rare", 1), ("common", 9), ("second", 5)]})
    await warmed(provider, kinds, boxes=8, rounds=2)
    assert provider.warmed == [("common", 4), ("second", 4)]


async def test_they_are_asked_for_again_and_again(monkeypatch) -> None:
    monkeypatch.setattr(boxes, "_AGAIN_S", 0.0)
    provider = Provider()
    await warmed(provider, Counter([SandboxSpec(image="x")]), rounds=3)
    assert len(provider.warmed) >= 3


async def test_a_box_that_cannot_be_started_is_said_and_stops_nothing(monkeypatch) -> None:
    monkeypatch.setattr(boxes, "_AGAIN_S", 0.0)
    said = await warmed(Provider(broken=True), Counter([SandboxSpec(image="x")]), rounds=2)
    assert "the engine is down" in said[0]


async def test_without_boxes_nothing_is_kept() -> None:
    await keep_warm(Counter(), Provider(), boxes=8, say=lambda _: None)


async def test_tasks_that_need_no_box_have_no_image_made() -> None:
    provider = Provider()
    found = await build_images([make_task(0), make_task(1), make_task(2)], Agent(), provider, say=lambda _: None)
    assert provider.asked == 2
    assert list(found.values()) == [2]
    assert {kind.image for kind in found} == {BASE_IMAGE}


async def test_a_build_that_fails_is_said_and_the_others_are_made() -> None:
    said = []
    found = await build_images([make_task(1), make_task(2)], Agent(), Provider(broken=True), say=said.append)
    assert list(found.values()) == [1]
    assert "task-1" in said[0]

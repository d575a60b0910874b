"""Images are made before the first episode; boxes stand ready for the groups that come next."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from envsdk.errors import SandboxError
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes.base import SandboxSpec
from envsdk.spec.model import ServiceSpec, Task, VerifierSpec
from tests.fakes.episodes import make_task
from trainer import boxes
from trainer.boxes import build_images, keep_warm


class Agent:
    """Takes a box for every task but number 0."""

    def needs_sandbox(self, task: Task) -> bool:
        return task.slug != "task-0"


class Provider:
    """Notes what is asked of it; ``broken`` makes the first image and every box fail."""

    def __init__(self, *, broken: bool = False) -> None:
        self.asked = 0
        self.warmed: list[tuple[str, int]] = []
        self.broken = broken

    async def ensure_image(self, environment: object, image: str, *, build_s: float) -> str:
        self.asked += 1
        if self.broken and self.asked == 1:
            raise SandboxError("the Dockerfile has a fault")
        return image

    async def prewarm(self, spec: SandboxSpec, n: int) -> None:
        self.warmed.append((spec.image, n))
        if self.broken:
            raise SandboxError("the engine is down")


TASKS = [make_task(number) for number in range(4)]
NEEDS = {task.digests.task: Counter({SandboxSpec(image=f"image-{task.slug}"): 2}) for task in TASKS[1:]}


class Warming:
    """`keep_warm` at work; ``upcoming`` may be changed, ``look`` tells it."""

    def __init__(self, provider: Provider, upcoming: Sequence[Task], *, needs: boxes.Needs = NEEDS) -> None:
        self.upcoming, self.moved, self.said = list(upcoming), asyncio.Event(), []
        self.work = asyncio.create_task(
            keep_warm(
                needs,
                provider,  # type: ignore[arg-type]
                upcoming=lambda: self.upcoming,
                members=4,
                moved=self.moved,
                say=self.said.append,
            )
        )

    async def look(self, *upcoming: Task) -> None:
        self.upcoming = list(upcoming)
        self.moved.set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self.work.cancel()
        await asyncio.gather(self.work, return_exceptions=True)


async def test_the_boxes_of_the_groups_that_come_next_stand_ready() -> None:
    provider = Provider()
    warming = Warming(provider, [TASKS[1], TASKS[2], TASKS[1], TASKS[0]])
    await warming.settle()
    await warming.end()
    assert provider.warmed == [("image-task-1", 16), ("image-task-2", 8)]


async def test_what_comes_no_more_is_let_go_and_what_comes_next_is_started() -> None:
    provider = Provider()
    warming = Warming(provider, [TASKS[1]])
    await warming.settle()
    await warming.look(TASKS[2])
    await warming.end()
    assert provider.warmed[1:] == [("image-task-2", 8), ("image-task-1", 0)]


async def test_they_are_asked_for_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "_AGAIN_S", 0.0)
    provider = Provider()
    warming = Warming(provider, [TASKS[1]])
    async with asyncio.timeout(30):
        while len(provider.warmed) < 3:  # noqa: ASYNC110 - the loop is what lets the task run
            await asyncio.sleep(0)
    await warming.end()


async def test_a_box_that_cannot_be_started_is_said_and_stops_nothing() -> None:
    warming = Warming(Provider(broken=True), [TASKS[1]])
    await warming.settle()
    await warming.look(TASKS[2])
    await warming.end()
    assert len(warming.said) >= 2
    assert "the engine is down" in warming.said[0]


async def test_without_boxes_nothing_is_kept() -> None:
    warming = Warming(Provider(), TASKS, needs={})
    async with asyncio.timeout(5):
        await warming.work


async def test_tasks_that_need_no_box_have_no_image_made() -> None:
    provider = Provider()
    found = await build_images(TASKS[:3], Agent(), provider, say=lambda _: None)  # type: ignore[arg-type]
    assert found.keys() == {task.digests.task for task in TASKS[1:3]}
    assert {kind.image for kinds in found.values() for kind in kinds} == {BASE_IMAGE}


@pytest.mark.parametrize(
    ("verifier", "boxes_needed"),
    [(VerifierSpec(kind="script"), 2), (VerifierSpec(kind="script", mode="shared"), 1)],
)
async def test_a_verifier_with_a_box_of_its_own_needs_one_more(verifier: VerifierSpec, boxes_needed: int) -> None:
    task = TASKS[1].model_copy(update={"spec": TASKS[1].spec.model_copy(update={"verifier": verifier})})
    found = await build_images([task], Agent(), Provider(), say=lambda _: None)  # type: ignore[arg-type]
    assert sum(found[task.digests.task].values()) == boxes_needed


async def test_a_box_beside_services_cannot_be_started_ahead() -> None:
    spec = TASKS[1].spec.model_copy(update={"services": (ServiceSpec(name="web", image="web"),)})
    task = TASKS[1].model_copy(update={"spec": spec})
    provider = Provider()
    assert await build_images([task], Agent(), provider, say=lambda _: None) == {}  # type: ignore[arg-type]
    assert provider.asked == 1


async def test_a_build_that_fails_is_said_and_the_others_are_made() -> None:
    said: list[str] = []
    found = await build_images(TASKS[1:3], Agent(), Provider(broken=True), say=said.append)  # type: ignore[arg-type]
    assert found.keys() == {TASKS[2].digests.task}
    assert "task-1" in said[0]

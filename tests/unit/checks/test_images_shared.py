"""What tasks of one image share is looked up once; a text answer's box is started only where something runs in it."""

from __future__ import annotations

from pathlib import Path

from envsdk.checks.scene import Scene
from envsdk.checks.shared import Shared
from envsdk.checks.stage import Stage
from envsdk.spec.model import ContainerSpec, Task
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import text_task


def boxed(root: Path, image: str = "fake:latest") -> Task:
    """A task with a box whose verifier judges the answer alone."""
    task = text_task(root, artifacts=("/app/answer.txt",), protocol="command")
    spec = task.spec.model_copy(update={"container": ContainerSpec(image=image)})
    return task.model_copy(update={"spec": spec, "oracle": "solution/solve.sh"})


async def test_doing_nothing_is_read_once_for_all_tasks_of_an_image(tmp_path: Path, provider: FakeProvider) -> None:
    started: list[str] = []
    acquire = provider.acquire

    async def counted(spec, **named):
        started.append(spec.image)
        return await acquire(spec, **named)

    provider.acquire = counted  # type: ignore[method-assign]
    shared = Shared()
    for number in range(3):
        async with Stage(boxed(tmp_path / str(number)), provider, shared=shared) as stage:
            assert (await stage.play(Scene())).reward == 0.0
    assert len(started) == 1


async def test_another_image_is_read_anew(tmp_path: Path, provider: FakeProvider) -> None:
    shared, made = Shared(), []

    async def make() -> int:
        made.append(1)
        return len(made)

    async with (
        Stage(boxed(tmp_path / "a"), provider, shared=shared) as one,
        Stage(boxed(tmp_path / "b"), provider, shared=shared) as same,
    ):
        assert [await one.once_per_image("n", make), await same.once_per_image("n", make)] == [1, 1]
        assert await one.once_per_image("another name", make) == 2
    fresh = Stage(boxed(tmp_path / "c"), provider)
    async with fresh:
        assert await fresh.once_per_image("n", make) == 3


async def test_a_text_answer_is_asked_again_without_a_snapshot_and_its_box_can_still_be_had(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with Stage(boxed(tmp_path), provider) as stage:
        run = await stage.passing_oracle()
        assert run is not None
        assert run.snapshot is None
        assert (await stage.play(Scene(after_oracle=True))).reward == 1.0
        async with stage.box(Scene(after_oracle=True)) as box:
            assert (await box.read("/app/answer.txt")).strip() == b"5"


async def test_what_is_known_is_told_without_asking(tmp_path: Path, provider: FakeProvider) -> None:
    async with Stage(boxed(tmp_path), provider) as stage:
        assert stage.known() == {}
        await stage.oracle()
        known = stage.known()
    assert known["oracle_reward"] == "1"
    assert known["image"]

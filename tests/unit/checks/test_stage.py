"""The stage: scenes in boxes of their own, the oracle played once, plain answers without a box."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.authoring.find import find_tasks
from envsdk.checks.outputs import changed_files
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage, oracle_scene
from envsdk.checks.targets import target_files
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Sandbox
from envsdk.spec.model import Task
from tests.fakes.sandbox import FakeProvider

AUTHORED = '''
from envsdk import ContainerSpec, Draw, Script, task, verifier

TEST = """#!/bin/sh
mkdir -p /logs/verifier
if [ "$(cat /app/out.txt 2>/dev/null)" = "right$EXTRA" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
BOX = ContainerSpec()


@verifier
def same(answer: str) -> bool:
    return answer.strip() == "right"


@task(verifier=Script(TEST), container=BOX, artifacts=["/app/out.txt"])
def boxed() -> Draw:
    return Draw(instruction="Write right to /app/out.txt.", oracle="echo right > /app/out.txt; echo x >> /app/runs")


@task(verifier=same)
def plain() -> Draw:
    return Draw(instruction="Say it.", oracle="right")
'''


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    folder = tmp_path_factory.mktemp("stage")
    (folder / "stage_tasks.py").write_text(AUTHORED)
    return {task.slug: task for task in find_tasks(folder / "stage_tasks.py", folder / "drawn")}


async def test_a_scene_starts_pristine_and_its_files_and_script_count(
    tasks: dict[str, Task], provider: FakeProvider
) -> None:
    async with Stage(tasks["boxed"], provider) as stage:
        assert (await stage.play(Scene())).reward == 0.0
        assert (await stage.play(Scene(files={"/app/out.txt": b"right\n"}))).reward == 1.0
        assert (await stage.play(Scene(script="echo right > /app/out.txt"))).reward == 1.0
        assert (await stage.play(Scene())).reward == 0.0
        assert stage.runs == 4


async def test_the_oracle_is_played_once_and_scenes_start_from_what_it_left(
    tasks: dict[str, Task], provider: FakeProvider
) -> None:
    async with Stage(tasks["boxed"], provider) as stage:
        run = await stage.oracle()
        assert run is not None
        assert run is await stage.passing_oracle()
        assert run.outputs == {"/app/out.txt": b"right\n"}
        assert run.before == {}
        assert (await stage.play(await oracle_scene(stage))).reward == 1.0
        wrong = Scene(files={"/app/out.txt": b"wrong\n"}, after_oracle=True)
        assert (await stage.play(wrong)).reward == 0.0
        async with stage.box(Scene(after_oracle=True)) as box:
            assert await box.read("/app/runs") == b"x\n"


async def test_variables_and_hooks_reach_the_verifier(tasks: dict[str, Task], provider: FakeProvider) -> None:
    async def late(box: Sandbox) -> None:
        await box.write("/app/out.txt", b"right\n")

    async with Stage(tasks["boxed"], provider) as stage:
        assert (await stage.play(Scene(before_start=late))).reward == 1.0
        right = {"/app/out.txt": b"right!\n"}
        assert (await stage.play(Scene(files=right, env={"EXTRA": "!"}))).reward == 1.0
        assert (await stage.play(Scene(files=right))).reward == 0.0


async def test_watching_tells_what_lies_there_after_the_verifier_ran(
    tasks: dict[str, Task], provider: FakeProvider
) -> None:
    async with Stage(tasks["boxed"], provider) as stage:
        verdict, told = await stage.watch(
            Scene(after_oracle=True), before="echo seen > /tmp/mark", after="cat /tmp/mark"
        )
    assert verdict.reward == 1.0
    assert told == b"seen\n"


async def test_a_plain_answer_needs_no_box(tasks: dict[str, Task]) -> None:
    async with Stage(tasks["plain"], None) as stage:
        assert await target_files(stage) == [stage.answer_path]
        assert (await stage.play(Scene())).reward == 0.0
        assert (await stage.play(Scene(files={stage.answer_path: b"right"}))).reward == 1.0
        run = await stage.oracle()
        assert run is not None
        assert run.verdict.reward == 1.0


async def test_a_task_that_needs_a_box_says_so_where_there_is_none(tasks: dict[str, Task]) -> None:
    async with Stage(tasks["boxed"], None) as stage:
        with pytest.raises(SandboxError) as refused:
            await stage.play(Scene())
    assert refused.value.code == "no_provider"


async def test_a_box_that_cannot_be_had_is_the_machinerys_failure_and_leaves_nothing(
    tasks: dict[str, Task], provider: FakeProvider
) -> None:
    provider.faults.acquire.append(SandboxError("no room"))
    async with Stage(tasks["boxed"], provider) as stage:
        with pytest.raises(SandboxError):
            await stage.play(Scene())
        assert (await stage.play(Scene())).reward == 0.0


async def test_what_is_made_once_is_shared(tasks: dict[str, Task], provider: FakeProvider) -> None:
    calls = []

    async def make() -> int:
        calls.append(1)
        return 7

    async with Stage(tasks["boxed"], provider) as stage:
        assert [await stage.once("n", make), await stage.once("n", make)] == [7, 7]
    assert len(calls) == 1


async def test_leaving_the_stage_ends_an_oracle_that_nobody_waits_for(
    tasks: dict[str, Task], provider: FakeProvider
) -> None:
    import asyncio

    async with Stage(tasks["boxed"], provider) as stage:
        waiting = asyncio.ensure_future(stage.oracle())
        await asyncio.sleep(0)
        waiting.cancel()
    assert provider.open_count == 0


def test_changed_files_are_new_or_different_ones(tmp_path: Path) -> None:
    assert changed_files({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == ["b", "c"]

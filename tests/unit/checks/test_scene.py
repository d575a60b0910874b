"""Setting a scene: files, then the script, then the solution, all as the agent, and nothing of it left behind."""

from __future__ import annotations

from pathlib import Path

from envsdk.checks.scene import Scene, set_scene
from envsdk.sandboxes.base import SandboxSpec
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import script_task


def solution(root: Path, text: str) -> Path:
    root.mkdir()
    (root / "solve.sh").write_text(f"#!/bin/sh\n{text}\n")
    (root / "solve.sh").chmod(0o755)
    return root


async def test_files_then_script_then_solution_and_the_last_end_is_told(tmp_path: Path, provider: FakeProvider) -> None:
    box = await provider.acquire(SandboxSpec(image="fake"))
    scene = Scene(
        files={"/app/new/a.txt": b"a"},
        script="cat /app/new/a.txt > /app/b.txt; exit 3",
        solution=solution(tmp_path / "s", "cat /app/b.txt /app/b.txt > /app/c.txt; exit 5"),
    )
    ended = await set_scene(script_task(tmp_path / "t"), box, scene)
    assert ended is not None
    assert (ended.exit_code, await box.read("/app/c.txt")) == (5, b"aa")
    assert not (await box.exec("test -e /solution")).ok
    await box.close()


async def test_where_nothing_runs_there_is_no_end_to_tell(tmp_path: Path, provider: FakeProvider) -> None:
    box = await provider.acquire(SandboxSpec(image="fake"))
    assert await set_scene(script_task(tmp_path / "t"), box, Scene(files={"/app/a": b"1"})) is None
    await box.close()


async def test_a_file_in_the_place_of_the_oracles_keeps_its_permissions(tmp_path: Path, provider: FakeProvider) -> None:
    task = script_task(tmp_path / "t")
    for after_oracle, runs in ((True, True), (False, False)):
        box = await provider.acquire(SandboxSpec(image="fake"))
        await box.write("/app/run.sh", b"#!/bin/sh\nexit 1\n", mode=0o755)
        await set_scene(task, box, Scene(files={"/app/run.sh": b"#!/bin/sh\nexit 0\n"}, after_oracle=after_oracle))
        assert (await box.exec("test -x /app/run.sh")).ok is runs
        await box.close()

"""Carrying artifacts: exactly what the agent left, nothing that leads elsewhere, nothing too large."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Sandbox, SandboxSpec
from envsdk.verifying import artifacts as module
from envsdk.verifying.artifacts import capture, place
from envsdk.verifying.verdict import Artifacts, answer_path, declared_artifacts
from tests.fakes.sandbox import FakeProvider, FakeSandbox
from tests.fakes.tasks import script_task, text_task


async def box_with(provider: FakeProvider, command: str) -> Sandbox:
    box = await provider.acquire(SandboxSpec(image="fake"))
    await box.exec(command)
    return box


async def captured(tmp_path: Path, command: str, *paths: str) -> Artifacts:
    provider = FakeProvider()
    found = await capture(await box_with(provider, command), paths, tmp_path / "end")
    await provider.close()
    return found


async def test_files_and_folders_come_with_their_bytes(tmp_path: Path) -> None:
    found = await captured(tmp_path, "printf 'a\\000b' > x; mkdir d; echo y > d/y", "/app/x", "/app/d/")
    assert found.captured == ("/app/x", "/app/d/")
    assert found.local("/app/x").read_bytes() == b"a\x00b"
    assert found.local("/app/d/y").read_text() == "y\n"


async def test_what_is_not_there_is_missing(tmp_path: Path) -> None:
    found = await captured(tmp_path, "true", "/app/x", "/app/d/")
    assert (found.captured, found.missing) == ((), ("/app/x", "/app/d/"))


async def test_a_path_named_twice_is_carried_once(tmp_path: Path) -> None:
    assert (await captured(tmp_path, "echo 1 > x", "/app/x", "/app/x")).captured == ("/app/x",)


async def test_links_inside_stay_and_links_that_lead_out_are_dropped(tmp_path: Path) -> None:
    made = "mkdir d; echo 1 > d/x; ln -s x d/in; ln -s ../../tests d/out; ln -s /etc/passwd d/abs; ln -s . d/self"
    found = await captured(tmp_path, made, "/app/d")
    left = {path.name for path in found.local("/app/d").iterdir()}
    assert left == {"x", "in", "self"}
    assert set(found.dropped) == {"/app/d/out", "/app/d/abs"}


async def test_an_artifact_that_is_a_link_is_not_carried(tmp_path: Path) -> None:
    found = await captured(tmp_path, "echo 1 > real; ln -s real x", "/app/x")
    assert "/app/x" not in found.captured or not found.local("/app/x").is_symlink()


async def test_what_is_too_large_is_dropped_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CAP_BYTES", 100)
    found = await captured(
        tmp_path, "mkdir d; head -c 60 /dev/zero > d/a; head -c 60 /dev/zero > d/b; echo 1 > x", "/app/d", "/app/x"
    )
    assert (found.captured, found.dropped) == (("/app/x",), ("/app/d",))


async def test_a_box_that_does_not_answer_is_an_error_not_an_empty_state(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await provider.acquire(SandboxSpec(image="fake"))
    await box.close()
    with pytest.raises(SandboxError):
        await capture(box, ["/app/x"], tmp_path)


async def carried(tmp_path: Path, left: str, image: str, *paths: str) -> list[str]:
    """What a fresh box of ``image`` holds under /app once the artifacts of ``left`` are in place."""
    provider = FakeProvider()
    found = await capture(await box_with(provider, left), paths, tmp_path / "end")
    fresh = await box_with(provider, image)
    await place(fresh, found)
    listed = await fresh.exec("find . -mindepth 1 | sort")
    await provider.close()
    return listed.stdout.decode().split()


async def test_a_deleted_file_is_deleted_in_the_fresh_box(tmp_path: Path) -> None:
    assert await carried(tmp_path, "true", "echo old > x; echo keep > y", "/app/x") == ["./y"]


async def test_a_folder_is_replaced_not_merged(tmp_path: Path) -> None:
    assert await carried(tmp_path, "mkdir d; touch d/new", "mkdir d; touch d/old", "/app/d") == ["./d", "./d/new"]


async def test_the_work_directory_itself_can_be_an_artifact(tmp_path: Path) -> None:
    assert await carried(tmp_path, "touch new .dot", "touch old ..odd .old", "/app") == ["./.dot", "./new"]


async def test_missing_parents_are_made(tmp_path: Path) -> None:
    assert await carried(tmp_path, "mkdir -p a/b; echo 1 > a/b/c", "true", "/app/a/b/c") == ["./a", "./a/b", "./a/b/c"]


async def test_names_with_spaces_and_quotes_are_only_names(tmp_path: Path) -> None:
    path = "/app/it's a $(touch /app/oops) name"
    assert "oops" not in " ".join(
        await carried(tmp_path, f'echo 1 > "{path.replace("$", chr(92) + "$")}"', "true", path)
    )


async def test_nothing_to_carry_asks_nothing_of_the_box(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await provider.acquire(SandboxSpec(image="fake"))
    assert isinstance(box, FakeSandbox)
    await place(box, Artifacts(tmp_path))
    assert box.commands == []
    await provider.close()


def test_a_task_that_declares_nothing_is_graded_on_its_answer_or_its_work_directory(tmp_path: Path) -> None:
    assert declared_artifacts(text_task(tmp_path / "a").spec) == ("/app/answer.txt",)
    assert declared_artifacts(script_task(tmp_path / "b", artifacts=()).spec) == ("/app",)
    assert declared_artifacts(script_task(tmp_path / "c").spec) == ("/app/total.txt",)


def test_the_answer_goes_where_the_first_artifact_is(tmp_path: Path) -> None:
    assert answer_path(text_task(tmp_path / "a").spec) == "/app/answer.txt"
    assert answer_path(text_task(tmp_path / "b", artifacts=("/out/x", "/out/y")).spec) == "/out/x"

"""The sandbox in memory: files are real, commands are answered as they were told to be, and nothing is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import ExecResult, Sandbox
from envsdk.sandboxes.memory import MemorySandbox


def test_it_is_a_sandbox() -> None:
    assert isinstance(MemorySandbox(), Sandbox)


@pytest.mark.parametrize(
    ("reply", "exit_code", "stdout"),
    [("9\n", 0, b"9\n"), (b"\xff", 0, b"\xff"), (3, 3, b""), (ExecResult(exit_code=None, timed_out=True), None, b"")],
)
async def test_a_command_ends_as_it_was_told_to(reply: object, exit_code: int | None, stdout: bytes) -> None:
    box = MemorySandbox(replies={"run it": reply})  # type: ignore[dict-item]
    ended = await box.exec("run it")
    assert (ended.exit_code, ended.stdout) == (exit_code, stdout)


async def test_a_list_of_words_is_the_command_that_one_would_type() -> None:
    box = MemorySandbox(replies={"echo 'a b'": "a b\n"})
    assert (await box.exec(["echo", "a b"])).stdout == b"a b\n"
    assert box.commands == ["echo 'a b'"]


async def test_a_command_that_nobody_answered_is_an_error() -> None:
    with pytest.raises(SandboxError) as caught:
        await MemorySandbox(replies={"ls": ""}).exec("ls -a")
    assert caught.value.code == "no_reply"


async def test_a_function_may_answer() -> None:
    box = MemorySandbox(replies=lambda command: command.upper() if command != "no" else None)
    assert (await box.exec("yes")).stdout == b"YES"
    with pytest.raises(SandboxError):
        await box.exec("no")


async def test_long_output_is_cut_and_counted() -> None:
    ended = await MemorySandbox(replies={"x": "a" * 100}).exec("x", output_cap_bytes=10)
    assert (ended.stdout, ended.truncated, ended.total_bytes) == (b"a" * 10, True, 100)


async def test_files_are_written_and_read_and_missing_ones_are_named() -> None:
    box = MemorySandbox(files={"/app/a": b"1"})
    await box.write("/app/b", b"2")
    assert (await box.read("/app/a"), await box.read("/app/b")) == (b"1", b"2")
    with pytest.raises(SandboxError) as caught:
        await box.read("/app/c")
    assert caught.value.code == "no_such_file"


async def test_a_folder_comes_back_as_it_went_in(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "x").write_bytes(b"\0")
    (tmp_path / "in" / "y").write_bytes(b"y")
    box = MemorySandbox()
    await box.upload(tmp_path / "in", "/app")
    assert box.files == {"/app/deep/x": b"\0", "/app/y": b"y"}
    await box.download("/app", tmp_path / "out")
    assert (tmp_path / "out" / "deep" / "x").read_bytes() == b"\0"
    await box.download("/app/y", tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == b"y"


async def test_a_fork_shares_nothing_that_is_written_later() -> None:
    box = MemorySandbox(files={"/a": b"1"})
    one, other = await box.fork(2)
    await one.write("/a", b"2")
    assert (await box.read("/a"), await other.read("/a")) == (b"1", b"1")


async def test_a_closed_one_answers_nothing() -> None:
    box = MemorySandbox(replies={"ls": ""})
    await box.close()
    assert not (await box.alive()).alive
    with pytest.raises(SandboxError):
        await box.exec("ls")

"""Progress: drawn where somebody can see it, and nothing of it in a pipe."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterable

import pytest
from rich.console import Console

from envsdk.cli import progress
from envsdk.cli.progress import counted, stderr_console, waited, walked


def shown(*, terminal: bool, steps: int) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80)
    with counted(console, "checking", steps) as done:
        for number in range(steps):
            done(f"task-{number}")
    return out.getvalue()


def test_a_terminal_sees_how_much_is_done_and_what_came_last() -> None:
    text = shown(terminal=True, steps=3)
    assert "3/3" in text
    assert "task-2" in text


def test_a_pipe_gets_nothing() -> None:
    assert shown(terminal=False, steps=3) == ""


@pytest.mark.parametrize(("kind", "said"), [(list, ["1 of 3", "2 of 3", "3 of 3"]), (iter, ["1", "2", "3"])])
def test_a_walk_in_a_pipe_says_how_far_it_has_come(
    monkeypatch: pytest.MonkeyPatch, kind: Callable[[Iterable[int]], Iterable[int]], said: list[str]
) -> None:
    monkeypatch.setattr(progress, "_LINE_S", 0.0)
    out = io.StringIO()
    walk = walked(Console(file=out), "importing")
    assert list(walk(kind([7, 8, 9]))) == [7, 8, 9]
    assert out.getvalue().splitlines() == [f"importing: {word}" for word in said]


def test_a_short_walk_says_nothing_in_a_pipe_and_draws_a_bar_on_a_terminal() -> None:
    piped, drawn = io.StringIO(), io.StringIO()
    assert list(walked(Console(file=piped), "importing")([1, 2])) == [1, 2]
    assert list(walked(Console(file=drawn, force_terminal=True, width=80), "importing")([1, 2])) == [1, 2]
    assert piped.getvalue() == ""
    assert "2/2" in drawn.getvalue()


def test_a_failure_on_the_way_is_passed_on() -> None:
    with pytest.raises(ValueError, match="broken"), counted(Console(file=io.StringIO()), "checking", 2):
        raise ValueError("broken")


async def test_a_wait_in_a_pipe_says_where_it_stands_whenever_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LINE_S", 0.001)
    out = io.StringIO()
    ended = asyncio.Event()
    standings = iter(["0 of 2", "0 of 2", "1 of 2", "1 of 2"])

    def standing() -> str:
        if (line := next(standings, None)) is None:
            ended.set()
        return line or "1 of 2"

    async def work() -> int:
        await ended.wait()
        return 7

    assert await waited(Console(file=out), work(), standing) == 7
    assert out.getvalue().splitlines() == ["0 of 2", "1 of 2"]


async def test_a_wait_that_stands_still_is_said_again_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LINE_S", 0.001)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    out = io.StringIO()
    ended = asyncio.Event()

    def standing() -> str:
        if out.getvalue().count("still") == 2:
            ended.set()
        return "still"

    await waited(Console(file=out), ended.wait(), standing)
    assert set(out.getvalue().splitlines()) == {"still"}
    assert out.getvalue().count("still") >= 3


async def test_a_wait_says_nothing_where_it_is_short_or_a_bar_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> int:
        await asyncio.sleep(0.01)
        return 7

    piped, drawn = io.StringIO(), io.StringIO()
    assert await waited(Console(file=piped), work(), lambda: "asked") == 7
    monkeypatch.setattr(progress, "_LINE_S", 0.001)
    assert await waited(Console(file=drawn, force_terminal=True), work(), lambda: "asked") == 7
    assert piped.getvalue() == drawn.getvalue() == ""


def test_people_are_talked_to_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    stderr_console().print("looking")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "looking\n")

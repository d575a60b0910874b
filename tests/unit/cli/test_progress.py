"""Progress: drawn where somebody can see it, and nothing of it in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from envsdk.cli.progress import counted, stderr_console


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


def test_a_failure_on_the_way_is_passed_on() -> None:
    with pytest.raises(ValueError, match="broken"), counted(Console(file=io.StringIO()), "checking", 2):
        raise ValueError("broken")


def test_people_are_talked_to_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    stderr_console().print("looking")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "looking\n")

"""What a build says, of an engine that only tells: the words of the build alone, in log, progress and reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envsdk.sandboxes.docker_build import build

RED, PLAIN = "\x1b[91m", "\x1b[0m"


class Telling:
    """An engine and its client in one; builds come to the given events."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.hooks: dict[str, Any] = {}
        self._events = events

    def another_client(self, *, timeout_s: int) -> Telling:
        return self

    def build(self, **_: object) -> Iterator[dict[str, Any]]:
        yield from self._events

    def close(self) -> None:
        """Nothing to close."""


def built(tmp_path: Path, *events: dict[str, Any]) -> tuple[str, str, list[str]]:
    """What went wrong, the log, and the progress."""
    log, said = tmp_path / "build.log", []
    wrong = build(Telling(*events), b"", "t", log=log, build_s=60.0, progress=said.append)  # type: ignore[arg-type]
    return wrong, log.read_text(encoding="utf-8"), said


def test_colours_of_the_engine_reach_neither_reason_nor_log_nor_progress(tmp_path: Path) -> None:
    wrong, log, said = built(
        tmp_path, {"stream": f"{RED}no such file\n{PLAIN}"}, {"error": f"{RED}the command returned 1{PLAIN}"}
    )
    assert wrong == "the command returned 1; it wrote: no such file"
    assert log.splitlines() == said == ["no such file", "the command returned 1"]


def test_a_build_that_ends_well_is_told_and_has_no_fault(tmp_path: Path) -> None:
    assert built(tmp_path, {"stream": "Step 1/1 : FROM scratch\n"}, {"stream": "\n"}) == (
        "",
        "Step 1/1 : FROM scratch\n",
        ["Step 1/1 : FROM scratch"],
    )


def test_the_engines_own_steps_are_not_what_a_command_wrote(tmp_path: Path) -> None:
    wrong, _, _ = built(tmp_path, {"stream": "Step 2/2 : RUN false\n"}, {"error": "the command returned 1"})
    assert wrong == "the command returned 1"

"""What a page, a message or a docstring tells a reader to type is a command that exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main

from envsdk.cli.app import build_app, commands

ROOT = Path(__file__).parents[2]
SOURCES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")),
    *(
        path
        for folder in ("docs", "envsdk", "registry", "trainer", "tasks", "scripts", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".md", ".html", ".j2", ".sh"} and "_build" not in path.parts
    ),
]
# In a code span, or after a prompt: elsewhere "envsdk" is the project's name in a sentence.
_NAMED = re.compile(r"(?:`|\$ )envsdk ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")


@cache
def subcommands(name: str) -> frozenset[str]:
    tree = typer.main.get_command(build_app(name)).commands[name]  # type: ignore[attr-defined]
    return frozenset(getattr(tree, "commands", None) or ())


def named(text: str) -> Iterator[tuple[str, str]]:
    for found in _NAMED.finditer(text):
        yield found[1], found[2] or ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_is_named_exists(path: Path) -> None:
    known = commands()
    for name, rest in named(path.read_text(encoding="utf-8")):
        assert name in known, f"there is no command {name!r}"
        assert not (rest and subcommands(name)) or rest in subcommands(name), f"`envsdk {name}` has no {rest!r}"


def test_commands_are_found_in_spans_and_after_prompts_and_nowhere_else() -> None:
    text = "`envsdk registry sets` lists them; $ envsdk check tasks; an envsdk task"
    assert list(named(text)) == [("registry", "sets"), ("check", "tasks")]

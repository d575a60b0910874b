"""Write the reference page of the command line from the program itself: ``python docs/command_line.py``.

A test compares the page with the program, so that no command, argument or flag appears, changes or goes unnoticed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main

from envsdk.cli.app import build_app, commands

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "command-line.md"
HEAD = """# Command line

One program, `envsdk`. Results go to stdout, everything else to stderr. `--json` prints one object,
`{"ok": ..., "errors": [{"code", "message", "hint", "where"}], ...}`, in the shape of the web API. Settings: flags over
`ENVSDK_*` variables over the project's `envsdk.toml` (or `[tool.envsdk]` of its `pyproject.toml`) over the user's over
defaults. `registry` (`ENVSDK_REGISTRY`) is the registry's URL, `sandbox` the back end; the table `[train]` holds the
settings that `envsdk train --dry-run` lists. `ENVSDK_HOME`, in the environment alone, is the data folder.

`--debug`, anywhere, shows the traceback of an error.

Exit codes: 0 good, 1 what was checked is bad, 2 usage, 3 a prerequisite is missing, 4 could not decide or the machinery
failed on the way, 130 interrupted.

This page is written from the program by `python docs/command_line.py`.
"""


def page() -> str:
    """The whole page."""
    sections = [HEAD]
    for name in sorted(commands()):
        tree = typer.main.get_command(build_app(name))
        sections += sorted(_sections(f"envsdk {name}", tree.commands[name]))  # type: ignore[attr-defined]
    return "\n".join(sections)


def _sections(path: str, command: Any) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from _sections(f"{path} {name}", inner)
        return
    context = typer.Context(command)
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join([path, *(_metavar(argument) for argument in arguments), *(["[OPTIONS]"] if options else [])])
    rows = [f"| `{_metavar(item)}` | {_cell(item)} |" for item in arguments]
    rows += [f"| {_spelling(item, context)} | {_cell(item)} |" for item in options]
    table = ["| | |", "|---|---|", *rows, ""] if rows else []
    yield "\n".join([f"## {path}", "", _prose(command.help or ""), "", "```text", usage, "```", "", *table])


def _metavar(argument: Any) -> str:
    plain = argument.metavar or argument.name.upper()
    return plain if argument.required else f"[{plain}]"


def _spelling(option: Any, context: typer.Context) -> str:
    kind = option.display_type(context).strip("<>").removeprefix("list[").rstrip("]").partition(" ")[0].upper()
    value = "" if option.is_flag else f" {option.metavar or kind}"
    names = [*option.opts, *option.secondary_opts]
    return ", ".join(f"`{name}{value}`" for name in names)


def _cell(parameter: Any) -> str:
    default = parameter.default
    shown = "" if default in {None, False, ""} or callable(default) or parameter.required else f" Default: `{default}`."
    return ((getattr(parameter, "help", None) or "").strip() + shown).replace("|", "\\|").replace("\n", " ")


def _prose(text: str) -> str:
    return re.sub(r"\n(?!\n)", " ", inspect.cleandoc(text)).replace("\n ", "\n\n").replace("<", "&lt;").strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")

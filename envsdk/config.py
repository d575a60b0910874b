"""Settings and where each came from: ``ENVSDK_*`` over the project's TOML over the user's over defaults.

Flags of a command come before all of these and are that command's own. The project's file is ``envsdk.toml`` or
``[tool.envsdk]`` of ``pyproject.toml``, the first found from the working directory upwards; the user's is
``config.toml`` in the platform's configuration folder. A table in such a file belongs to the command of its name, which
reads it through `settings_files` (``[train]``); a name that is neither a setting nor a command is an error.

Secrets are never settings, nor is what a process and those it starts must agree on: the data folder (``ENVSDK_HOME``,
see `envsdk.home`) comes from the environment alone.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import platformdirs

from envsdk.errors import UsageError
from envsdk.suggest import did_you_mean

DEFAULTS: Mapping[str, str] = {
    "registry": "",
    "sandbox": "",
}
"""Every setting: the registry's URL and the sandbox back end; empty for the built-in choice."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its origin: ``default``, a file's path, or the name of an environment variable."""

    name: str
    value: str
    origin: str


def setting(name: str, *, start: Path | None = None) -> Setting:
    """One setting. Raises as `settings` does, and `KeyError` for a name that is none."""
    return settings(start=start)[name]


def settings(*, start: Path | None = None) -> dict[str, Setting]:
    """Every setting, resolved from ``start`` (default: the working directory).

    Raises:
        UsageError: a file is not TOML, or has a setting that is none or not text (codes ``bad_config``).
    """
    found = {name: Setting(name, value, "default") for name, value in DEFAULTS.items()}
    for path, table in settings_files(start=start):
        for name, value in table.items():
            if isinstance(value, Mapping):
                _check_table(path, name)
            else:
                found[name] = Setting(name, _checked(path, name, value), str(path))
    for name in DEFAULTS:
        variable = f"ENVSDK_{name.upper()}"
        if os.environ.get(variable):
            found[name] = Setting(name, os.environ[variable], variable)
    return found


def settings_files(*, start: Path | None = None) -> Sequence[tuple[Path, Mapping[str, Any]]]:
    """The user's file and the project's, where there are such, the weaker first; each with its whole table.

    Raises:
        UsageError: a file is not TOML (code ``bad_config``).
    """
    here = start or Path.cwd()
    tables = []
    user = platformdirs.user_config_path("envsdk", appauthor=False) / "config.toml"
    if user.is_file():
        tables.append((user, read_settings(user)))
    for folder in (here, *here.absolute().parents):
        own, project = folder / "envsdk.toml", folder / "pyproject.toml"
        if own.is_file():
            return [*tables, (own, read_settings(own))]
        if project.is_file():
            table = read_settings(project).get("tool", {}).get("envsdk")
            if table is not None:
                return [*tables, (project, table)]
    return tables


def read_settings(path: Path) -> dict[str, Any]:
    """The tables of one file. Raises `UsageError` (``bad_config``) where it is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"is not TOML: {error}", code="bad_config", where=str(path), hint="fix the file") from error


def _check_table(path: Path, name: str) -> None:
    commands = sorted(entry.name for entry in entry_points(group="envsdk.commands"))
    if name not in commands:
        hint = did_you_mean(name, commands) or f"tables are {', '.join(commands)}"
        raise UsageError(f"unknown table [{name}]", code="bad_config", where=str(path), hint=hint)


def _checked(path: Path, name: str, value: Any) -> str:
    if name not in DEFAULTS:
        hint = did_you_mean(name, DEFAULTS) or f"settings are {', '.join(sorted(DEFAULTS))}"
        raise UsageError(f"unknown setting {name!r}", code="bad_config", where=str(path), hint=hint)
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, found {value!r}", code="bad_config", where=str(path), hint="quote it")
    return value

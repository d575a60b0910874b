"""Commits that a repository inside an image holds beyond its checked-out one: the fix, often, that a task asks for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from envsdk.checks.stage import Stage
from envsdk.errors import SandboxError
from envsdk.files.scratch import scratch

_SHOWN = 5


async def future_commits(stage: Stage, repositories: Iterable[str]) -> dict[str, list[str]]:
    """Repository -> some commits that are not reachable from its HEAD: by other refs, reflogs, or dangling.

    Raises:
        SandboxError: the box does not answer.
    """
    if shutil.which("git") is None:
        return {}
    return {path: commits for path in repositories if (commits := await _beyond_head(stage, path))}


async def _beyond_head(stage: Stage, path: str) -> list[str]:
    with scratch("git") as name:
        folder = name / "repository.git"
        try:
            await stage.download_pristine(path, folder)
        except SandboxError as error:
            if error.code == "bad_tree":
                return []
            raise
        logged = _git(folder, "log", "--all", "--reflog", "--oneline", f"-{_SHOWN}", "--not", "HEAD")
        dangling = _git(folder, "fsck", "--unreachable", "--no-reflogs", "--no-progress")
        loose = [line.split()[-1][:12] for line in dangling if line.startswith("unreachable commit")]
        return (logged or loose)[:_SHOWN]


def _git(folder: Path, *words: str) -> list[str]:
    """Lines that git prints about a downloaded repository, whose own configuration and hooks are not used."""
    (folder / "config").unlink(missing_ok=True)
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    command = ["git", f"--git-dir={folder}", *words]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    return ended.stdout.splitlines()

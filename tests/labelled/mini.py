"""One labelled miniature task, and its writing as a task directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

_TOML = """schema_version = "1.4"
artifacts = [{artifacts}]

[task]
name = "labelled/{id}"

[agent]
timeout_sec = 30.0
user = "agent"

[verifier]
timeout_sec = 30.0
user = "root"
environment_mode = "{mode}"
"""
_BOX = """
[environment]
cpus = 1
memory_mb = 512
network_mode = "no-network"
"""
_PYTHON = """
[metadata.envsdk]
slug = "{id}"

[metadata.envsdk.agent]
protocol = "{protocol}"

[metadata.envsdk.verifier]
kind = "{kind}"
entry = "tests/verifier.py::judge"
exit_status = "native"
"""
_DOCKERFILE = """ARG BASE={base}
FROM ${{BASE}}
RUN id agent 2>/dev/null || useradd --create-home agent; mkdir -p /app
WORKDIR /app
{lines}
RUN chown -R agent:agent /app
"""
_QUIET = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
REWARD = "\nif [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
"""The usual end of a script: the status of the command before it, as a reward."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A task with its label.

    Attributes:
        id: its name, also the directory's.
        instruction: what the agent is asked.
        solve: the oracle's commands; for ``text`` the answer itself.
        test: ``tests/test.sh`` after its first two lines; for ``text`` and ``state`` the Python verifier.
        artifacts: what is carried to the verifier.
        caught_by: the first of these checks must fail; empty for a good verifier.
        why: what is wrong, or what a good one resembles.
        lines: more of the Dockerfile.
        files: more files of the directory.
        kind: of the verifier.
        mode: where a script runs.
        base: the image it starts from.
        prepare: commands that make more of ``environment/`` on this machine when the task is written.
    """

    id: str
    instruction: str
    solve: str
    test: str
    artifacts: str = ""
    caught_by: tuple[str, ...] = ()
    why: str = ""
    lines: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["script", "text", "state"] = "script"
    mode: Literal["shared", "separate"] = "shared"
    base: str = "python:3.12-slim"
    prepare: str = ""

    @property
    def is_good(self) -> bool:
        """No check may fail on it."""
        return not self.caught_by


def write(task: Labelled, parent: Path) -> Path:
    """Write the task's directory below ``parent`` and return it."""
    folder = parent / task.id
    artifacts = ", ".join(f'"{path}"' for path in task.artifacts.split())
    toml = _TOML.format(artifacts=artifacts, id=task.id, mode=task.mode)
    files = {"instruction.md": task.instruction + "\n"}
    if task.kind != "text":
        toml += _BOX
        files["environment/Dockerfile"] = _DOCKERFILE.format(lines=task.lines, base=task.base)
        files["solution/solve.sh"] = f"#!/bin/sh\nset -eu\n{task.solve.strip()}\n"
    else:
        files["solution/answer.txt"] = task.solve
    if task.kind == "script":
        files["tests/test.sh"] = f"#!/bin/sh\nmkdir -p /logs/verifier\n{task.test.strip()}\n"
    else:
        protocol = "answer" if task.kind == "text" else "shell"
        toml += _PYTHON.format(id=task.id, kind=task.kind, protocol=protocol)
        files["tests/verifier.py"] = task.test
    for name, text in {**files, "task.toml": toml, **task.files}.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")
        place.chmod(0o755 if name.endswith(".sh") else 0o644)
    if task.prepare:
        command = ["sh", "-euc", task.prepare]
        subprocess.run(command, cwd=folder / "environment", check=True, capture_output=True, env=_QUIET)
    return folder

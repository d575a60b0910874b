"""Answers that an author supplied beside the task: wrong ones that must not pass, right ones that must.

They lie in ``mutants/wrong`` and ``mutants/right``: scripts, run in place of the oracle's, or plain answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envsdk.checks.opening import SOLVE
from envsdk.checks.scene import Scene
from envsdk.checks.stage import ANSWER, Stage
from envsdk.files.scratch import scratch
from envsdk.verifying.verdict import Verdict

Side = Literal["wrong", "right"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One supplied answer: its name, which side it is on, and its file."""

    name: str
    side: Side
    path: Path


def supplied(task_root: Path) -> Iterator[Reply]:
    """Every answer that lies beside a task, wrong ones first, by name."""
    sides: tuple[Side, ...] = ("wrong", "right")
    for side in sides:
        folder = task_root / "mutants" / side
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.is_file() and path.suffix in {".sh", ".txt"}:
                yield Reply(path.stem, side, path)


async def play_reply(stage: Stage, reply: Reply) -> Verdict:
    """What the verifier says of a supplied answer, given in the oracle's place. Raises `SandboxError`."""
    if not stage.has_box and reply.path.suffix == ".txt":
        return await stage.play(Scene(files={stage.answer_path: reply.path.read_bytes()}))
    with scratch("reply") as name:
        folder = name / "solution"
        if (stage.task.root / "solution").is_dir():
            shutil.copytree(stage.task.root / "solution", folder, symlinks=True)
        folder.mkdir(exist_ok=True)
        shutil.copy(reply.path, folder / (SOLVE if reply.path.suffix == ".sh" else ANSWER))
        return await stage.play(Scene(solution=folder))

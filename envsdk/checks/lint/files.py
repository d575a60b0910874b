"""The files of a task as rules read them: text by path, and run bits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envsdk.spec.model import Task

_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Readable texts of the verifier, the oracle and the environment, by path inside the task; and what may be run."""

    task: Task
    texts: dict[str, str]
    executable: frozenset[str]

    def under(self, *folders: str) -> dict[str, str]:
        """Texts below some of the top folders."""
        return {path: text for path, text in self.texts.items() if path.split("/")[0] in folders}

    @property
    def dockerfile(self) -> str:
        """Text of ``environment/Dockerfile``; empty where there is none."""
        return self.texts.get("environment/Dockerfile", "")


def read_task_files(task: Task) -> TaskFiles:
    """Every small text file under ``tests``, ``solution`` and ``environment``; others are left out."""
    texts, executable = {}, set()
    for folder in ("tests", "solution", "environment"):
        for path in sorted((task.root / folder).rglob("*")):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_BYTES:
                continue
            name = path.relative_to(task.root).as_posix()
            if path.stat().st_mode & 0o100:
                executable.add(name)
            if (text := _text(path)) is not None:
                texts[name] = text
    return TaskFiles(task, texts, frozenset(executable))


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None

"""A run's directory: what is in it, and the rules for making and reopening it.

    .lock                held by the process that trains here, see `trainer.claim`
    config.toml          the resolved settings; ``--config`` takes it
    run.json             id, started, command, versions, seed, hardware, task-set digest, status
    dispatched.jsonl     every start of an episode
    episodes.jsonl       every end: an `EpisodeRecord` a row
    metrics.jsonl        one row a step
    timeline.jsonl       who did what when, in seconds since the start of the attempt
    tasks/               the pinned tasks' files
    checkpoints/         see `trainer.checkpoint`
    model/               the trained model, once the run is done
    report.html

A directory that holds anything is never overwritten, nor removed but by the process that made a run in it and started
no episode: it is resumed, or another name is taken. With ``run.json``, written after the settings, a directory is a
run's; it is replaced as a whole, so a reader sees one status or the next.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from envsdk.errors import StoreError, UsageError
from envsdk.files.jsonl import append_row, read_rows, write_rows
from envsdk.files.replace import write_whole
from trainer.claim import LOCK
from trainer.config import TrainConfig
from trainer.ledger import STARTS
from trainer.machine import machine_facts

RUN, CONFIG, METRICS, TIMELINE, TASKS, CHECKPOINTS, MODEL = (
    "run.json",
    "config.toml",
    "metrics.jsonl",
    "timeline.jsonl",
    "tasks",
    "checkpoints",
    "model",
)
_UNSTARTED = {LOCK, CONFIG}
"""All that a process which was killed before it wrote ``run.json`` can have left."""


class RunDir:
    """One run's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._facts: dict[str, Any] = {}
        self._made_here = False

    @classmethod
    def create(cls, path: Path, config: TrainConfig, **facts: Any) -> RunDir:
        """Make a new run's directory.

        Raises:
            UsageError: ``run_exists``: there is a run already; ``bad_run_dir``: there is something else.
        """
        if (path / RUN).exists():
            raise UsageError(
                "there is a run in this directory",
                code="run_exists",
                hint="--resume it, give another --name, or remove the directory",
                where=str(path),
            )
        path.mkdir(parents=True, exist_ok=True)
        if others := sorted(entry.name for entry in path.iterdir() if not _may_be_left(entry.name)):
            raise UsageError(
                f"the directory holds {others[0]} and no run",
                code="bad_run_dir",
                hint="give another --name or --runs",
                where=str(path),
            )
        run = cls(path)
        run._made_here = True
        run._facts = {"id": secrets.token_hex(4), **machine_facts(), "seed": config.seed, **facts}
        write_whole(path / CONFIG, tomlkit.dumps({"train": config.model_dump(exclude_none=True)}))
        run.update(status="running", started=time.time())
        latest = path.parent / "latest"
        if latest.is_symlink() or not latest.exists():
            latest.unlink(missing_ok=True)
            latest.symlink_to(path.name)
        return run

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """Reopen a run.

        Raises:
            UsageError: ``no_run``: there is none.
            StoreError: ``corrupt_run``: its facts cannot be read.
        """
        try:
            facts = json.loads((path / RUN).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            hint = "give the folder of one run, such as runs/train"
            raise UsageError("no run in this directory", code="no_run", where=str(path), hint=hint) from None
        except ValueError as error:  # also of bytes that are no UTF-8
            facts = error
        if not isinstance(facts, dict) or not isinstance(facts.get("status"), str):
            raise StoreError(
                f"{RUN} is damaged: {facts if isinstance(facts, ValueError) else 'no run says so of itself'}",
                code="corrupt_run",
                hint="restore it; config.toml, the ledger and the checkpoints hold everything else",
                where=str(path / RUN),
            )
        run = cls(path)
        run._facts = facts
        return run

    def discard_unstarted(self) -> None:
        """Remove the directory of a run that was made here and ended before its first episode, so its name is free."""
        starts = self.path / STARTS
        if not self._made_here or (starts.exists() and starts.stat().st_size):
            return
        latest = self.path.parent / "latest"
        if latest.is_symlink() and latest.readlink() == Path(self.path.name):
            latest.unlink()
        shutil.rmtree(self.path)

    @property
    def prefix(self) -> str:
        """What the ids of this run's groups and episodes begin with: no other run's do, whatever its name."""
        run_id = self._facts.get("id")
        return f"{run_id}-" if run_id else ""  # runs of before ids were theirs alone

    @property
    def registry_name(self) -> str:
        """The run's name in a registry: of two runs in folders of one name, each has its own."""
        return f"{self.path.name[:100]}-{self.prefix}".rstrip("-")

    @property
    def facts(self) -> Mapping[str, Any]:
        """What ``run.json`` says."""
        return dict(self._facts)

    def update(self, **facts: Any) -> None:
        """Replace ``run.json`` with these facts added."""
        self._facts |= facts
        write_whole(self.path / RUN, json.dumps(self._facts, indent=1))

    def metrics(self, row: Mapping[str, Any]) -> None:
        """Add a step's metrics. Raises StoreError where a value is not finite."""
        append_row(self.path / METRICS, row, fsync=False)

    def forget_after(self, step: int) -> None:
        """Drop the metrics of steps that a resume has undone; their episodes stay in the ledger."""
        path = self.path / METRICS
        if path.exists():
            write_rows(path, [row for row in read_rows(path).rows if row["step"] <= step])

    def timeline(self, who: str, what: str, start: float, end: float, **more: Any) -> None:
        """Add one bar of the timeline; seconds since the start of the attempt."""
        row = {"who": who, "what": what, "start": round(start, 4), "end": round(end, 4), **more}
        append_row(self.path / TIMELINE, row, fsync=False)

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.path / CHECKPOINTS


def _may_be_left(name: str) -> bool:
    return name in _UNSTARTED or name.startswith((f".{RUN}.", f".{CONFIG}."))

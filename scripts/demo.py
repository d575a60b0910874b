"""The demonstration: from drawn tasks to a model that has visibly learned, by the commands a user would type.

Each stage is one or more ``envsdk`` commands, printed before they run. A finished stage leaves a marker in the folder
``demo/``, so that an interrupted demonstration goes on where it stopped; a stage whose commands changed is done again,
and with it all after it. Remove the folder to begin anew.

    python scripts/demo.py [--settings FILE] [--folder DIR]
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).with_name("demo.toml")
FOLDER = ROOT / "demo"
ENVSDK = str(Path(sys.executable).with_name("envsdk"))
INTERRUPTED = 130


class StageError(Exception):
    """A command of a stage failed; ``status`` is its exit status, and it has said why itself."""

    def __init__(self, stage: str, status: int) -> None:
        super().__init__(stage)
        self.stage, self.status = stage, status


@dataclass(frozen=True)
class Stage:
    """One step: ``commands`` gives what to run from the results of the stages before it."""

    name: str
    title: str
    commands: Callable[[Results], list[list[str]]]


@dataclass
class Results:
    """What the finished stages printed with ``--json``, by stage; one envelope for each command."""

    envelopes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def last(self, stage: str) -> dict[str, Any]:
        """The last command's envelope of a stage."""
        return self.envelopes[stage][-1]


def stages(settings: dict[str, Any]) -> Iterator[Stage]:
    """The demonstration, in order."""
    demo, model = settings["demo"], settings["train"]["model"]
    run_dir, tasks, held_out = FOLDER / "run", FOLDER / "tasks", FOLDER / "held-out"

    def draw(_: Results) -> list[list[str]]:
        return [
            ["draw", family["name"], str(folder), *_levels(family), "--seeds", family[seeds], *tag]
            for family in demo["families"]
            for folder, seeds, tag in ((tasks, "train", []), (held_out, "held_out", ["--tag", "held-out"]))
        ]

    yield Stage("draw", "draw tasks to train on, and others to hold out", draw)
    yield Stage("check", "prove the verifiers", lambda _: [["check", str(tasks), str(held_out)]])
    yield Stage("push", "put the tasks into a registry", lambda _: [["registry", "push", str(tasks), str(held_out)]])
    yield Stage(
        "calibrate",
        "measure how hard the tasks are, with vLLM episodes",
        lambda _: [["registry", "calibrate", demo["query"], "--policy", f"vllm:{model}"]],
    )
    evaluate = ["eval", "--set", "held-out", "--episodes", str(demo["eval_episodes"])]
    yield Stage("before", "evaluate on the held-out tasks, before", lambda _: [[*evaluate, "--model", model]])
    train = ["train", "--query", demo["query"], "--config", str(SETTINGS), "--run-dir", str(run_dir), "--resume"]
    yield Stage("train", "train: generation and learning overlap", lambda _: [train])
    yield Stage(
        "after",
        "evaluate on the held-out tasks, after",
        lambda results: [[*evaluate, "--model", str(Path(results.last("train")["run_dir"]) / "model")]],
    )
    yield Stage("report", "write the report", lambda results: [["report", results.last("train")["run_dir"]]])


def _levels(family: dict[str, Any]) -> list[str]:
    return [part for level in family["level"] for part in ("--level", level)]


def run_stage(stage: Stage, number: str, results: Results) -> None:
    """Run a stage, or read its marker where the same commands have ended well before.

    Raises:
        StageError: a command failed.
    """
    commands = stage.commands(results)
    marker = FOLDER / "done" / f"{stage.name}.json"
    stored = json.loads(marker.read_text(encoding="utf-8")) if marker.is_file() else {}
    if stored.get("commands") == commands:
        say(f"[{number}] {stage.title}: done before")
        results.envelopes[stage.name] = stored["envelopes"]
        return
    marker.unlink(missing_ok=True)
    say(f"[{number}] {stage.title}")
    began = time.monotonic()
    envelopes = [run_command(stage.name, command) for command in commands]
    results.envelopes[stage.name] = envelopes
    growing = marker.with_suffix(".growing")
    growing.write_text(json.dumps({"commands": commands, "envelopes": envelopes}), encoding="utf-8")
    growing.replace(marker)
    say(f"[{number}] {stage.title}: {time.monotonic() - began:.0f} s")


def run_command(stage: str, command: list[str]) -> dict[str, Any]:
    """Run one ``envsdk`` command; its progress goes to our stderr, its envelope is returned."""
    print(f"  $ envsdk {shlex.join(command)}", file=sys.stderr, flush=True)
    done = subprocess.run([ENVSDK, *command, "--json"], stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        for error in json.loads(lines[-1]).get("errors", []) if lines else []:
            print(f"  {error['code']}: {error['message']}", file=sys.stderr)
        raise StageError(stage, done.returncode or 4)
    return dict(json.loads(lines[-1]))


def say(text: str) -> None:
    """One line of progress."""
    print(f"==> {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Run everything that is not done yet; the exit status of the command line's table."""
    settings = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    FOLDER.joinpath("done").mkdir(parents=True, exist_ok=True)
    os.environ["ENVSDK_REGISTRY"] = f"sqlite:///{FOLDER / 'registry.sqlite'}"
    results = Results()
    everything = list(stages(settings))
    try:
        for number, stage in enumerate(everything, start=1):
            run_stage(stage, f"{number}/{len(everything)}", results)
    except KeyboardInterrupt:
        say("interrupted; `make demo` goes on where this stopped")
        return INTERRUPTED
    except StageError as failed:
        say(f"the stage {failed.stage!r} failed with status {failed.status}; `make demo` tries it again")
        return failed.status
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The demonstration: from drawn tasks to a model that has visibly learned, by the commands a user would type.

Each stage is one or more ``envsdk`` commands, printed before they run. A finished stage leaves a marker in the folder
``demo/``, so that an interrupted demonstration goes on where it stopped; a stage whose commands changed is done again,
and with it all after it. Remove the folder to begin anew.

One demonstration works in a folder at a time. Killed, it takes the command that it ran with it, and the next one waits
until that has closed its engines and sandboxes.

    python scripts/demo.py [--settings FILE] [--folder DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envsdk.cli.envelope import BAD, GOOD, INTERRUPTED, MISSING, UNDECIDED
from envsdk.errors import EnvsdkError
from envsdk.files.replace import write_whole
from envsdk.prerequisites import disk
from envsdk.sandboxes import open_provider
from trainer.config import resolve
from trainer.disk_room import require_room
from trainer.models import resolve_model

ROOT = Path(__file__).resolve().parents[1]
ENVSDK = str(Path(sys.executable).with_name("envsdk"))


class StageError(Exception):
    """A command of a stage failed; ``status`` is its exit status, and it has said why itself, or a signal killed it."""

    def __init__(self, stage: str, status: int) -> None:
        super().__init__(stage)
        self.stage, self.status = stage, status


@dataclass
class Results:
    """What the finished stages printed with ``--json``, by stage; one envelope for each command."""

    envelopes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def last(self, stage: str) -> dict[str, Any]:
        """The last command's envelope of a stage."""
        return self.envelopes[stage][-1]


@dataclass(frozen=True)
class Stage:
    """One step.

    Attributes:
        commands: what to run, from the results of the stages before it.
        makes: what the commands write and would stumble over; removed before they run again.
        resumes: a run's folder; where it holds checkpoints, ``resume`` goes on with them, else it is removed.
    """

    name: str
    title: str
    commands: Callable[[Results], list[list[str]]]
    makes: tuple[Path, ...] = ()
    resumes: Path | None = None
    resume: tuple[str, ...] = ()


def stages(settings: dict[str, Any], settings_file: Path, folder: Path) -> Iterator[Stage]:
    """The demonstration, in order."""
    demo, model = settings["demo"], settings["train"]["model"]
    tasks, held_out, runs = folder / "tasks", folder / "held-out", folder / "runs"

    def draw(_: Results) -> list[list[str]]:
        return [
            ["draw", family["name"], str(dest), *_levels(family), "--seeds", family[seeds], *tag]
            for family in demo["families"]
            for dest, seeds, tag in ((tasks, "train", []), (held_out, "held_out", ["--tag", "held-out"]))
        ]

    def evaluate(results: Results, trained: str, out: Path) -> list[list[str]]:
        pinned = results.last("pin")
        which = ["--set", f"{pinned['set']}@{pinned['revision']}", "--model", trained]
        return [["eval", *which, "-n", str(demo["eval_episodes"]), "--out", str(out)]]

    before, after = folder / "before.jsonl", folder / "after.jsonl"
    run = ["train", "--runs", str(runs), "--name", "train"]
    train = [*run, "--query", demo["query"], "--config", str(settings_file)]
    calibrate = ["registry", "calibrate", demo["calibrate"], "--policy", f"vllm:{model}"]
    pin = ["registry", "pin", "tag:held-out", "--name", "held-out"]
    both = [str(tasks), str(held_out)]
    yield Stage("draw", "draw tasks to train on, and others to hold out", draw, makes=(tasks, held_out))
    yield Stage("check", "prove their verifiers", lambda _: [["check", *both]])
    yield Stage("push", "put them into a registry", lambda _: [["registry", "push", *both]])
    yield Stage("pin", "pin the held-out tasks as a set", lambda _: [pin])
    yield Stage("calibrate", "measure how hard the tasks are, with vLLM episodes", lambda _: [calibrate])
    yield Stage(
        "before", "evaluate on held-out tasks, before", lambda done: evaluate(done, model, before), makes=(before,)
    )
    yield Stage(
        "train",
        "train: generation and learning overlap",
        lambda _: [train],
        resumes=runs / "train",
        resume=(*run, "--resume"),
    )
    yield Stage(
        "after",
        "evaluate on the same tasks, after",
        lambda done: evaluate(done, str(Path(done.last("train")["run_dir"]) / "model"), after),
        makes=(after,),
    )
    compared = [part for name, file in (("before", before), ("after", after)) for part in ("--eval", f"{name}={file}")]
    yield Stage("report", "write the report", lambda done: [["report", str(done.last("train")["run_dir"]), *compared]])


def _levels(family: dict[str, Any]) -> list[str]:
    return [part for level in family["level"] for part in ("--level", level)]


def run_stage(stage: Stage, number: str, results: Results, folder: Path, *, later: Sequence[Stage] = ()) -> bool:
    """Run a stage and tell that it ran, or read its marker where the same commands have ended well before.

    The markers of ``later`` stages, which rest on what it makes, go before it is run.

    Raises:
        StageError: a command failed.
    """
    commands = stage.commands(results)
    marker = folder / "done" / f"{stage.name}.json"
    stored = json.loads(marker.read_text(encoding="utf-8")) if marker.is_file() else {}
    if stored.get("commands") == commands:
        say(f"[{number}] {stage.title}: done before")
        results.envelopes[stage.name] = stored["envelopes"]
        return False
    say(f"[{number}] {stage.title}")
    for rests_on_it in later:
        (folder / "done" / f"{rests_on_it.name}.json").unlink(missing_ok=True)
    for made in stage.makes:
        shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
    going_on = stage.resumes is not None and (stage.resumes / "checkpoints").is_dir()
    if stage.resumes is not None and not going_on:
        shutil.rmtree(stage.resumes, ignore_errors=True)
    began = time.monotonic()
    envelopes = [run_command(stage.name, command) for command in ([list(stage.resume)] if going_on else commands)]
    results.envelopes[stage.name] = envelopes
    write_whole(marker, json.dumps({"commands": commands, "envelopes": envelopes}))
    say(f"[{number}] {stage.title}: {time.monotonic() - began:.0f} s")
    return True


def run_command(stage: str, command: list[str]) -> dict[str, Any]:
    """Run one ``envsdk`` command; its progress goes to our stderr, its envelope is returned.

    An interrupt reaches the command too, which closes its engines and sandboxes before it ends: it is waited for, never
    killed. Where this process is killed, the command is interrupted; until it ends it holds the folder's lock.
    """
    print(f"    $ envsdk {shlex.join(command)}", file=sys.stderr, flush=True)
    handlers = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with subprocess.Popen(
            [ENVSDK, *command, "--json"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            close_fds=False,  # the lock of `alone` is the one descriptor that is handed down
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - unsafe beside threads, of which there are none here
        ) as process:
            signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT))
            lines = process.communicate()[0].strip().splitlines()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if process.returncode in {INTERRUPTED, -signal.SIGINT, -signal.SIGTERM}:
        raise KeyboardInterrupt
    if process.returncode != GOOD or not lines:
        raise StageError(stage, process.returncode or UNDECIDED)
    return dict(json.loads(lines[-1]))


def _end_with_parent() -> None:
    """Between fork and exec: have the kernel interrupt this process when its parent is gone."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGINT)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a demonstration's folder; the commands that are run meanwhile hold it too, until the last one has ended."""
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for the end of another demonstration in {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.set_inheritable(lock, True)
        yield
    finally:
        os.close(lock)


def conclude(results: Results, folder: Path) -> int:
    """Say what was learned and where to look.

    The status is good where the model is better beyond both intervals, on tasks that it was not trained on.
    """
    before, after = results.last("before"), results.last("after")
    train = results.last("train")
    better = after["low"] > before["high"]
    trained_on = {path.name[:16] for path in Path(train["run_dir"]).joinpath("tasks").glob("*")}
    seen = [item["slug"] for item in results.last("pin")["items"] if item["task_digest"][:16] in trained_on]
    say("what came of it")
    for name, found in (("before", before), ("after", after)):
        rate, low, high = (f"{100 * found[key]:.1f}" for key in ("pass_rate", "low", "high"))
        print(f"    {name:7} {rate:>5} %  (95 % interval {low} to {high}; {found['n']} episodes)", file=sys.stderr)
    print(f"    training: {train['steps']} steps, outcomes {train['outcomes']}", file=sys.stderr)
    print(f"    the report:   {Path(train['run_dir']) / 'report.html'}", file=sys.stderr)
    print(f"    the registry: make serve    ({folder / 'registry.sqlite'})", file=sys.stderr)
    if not better:
        say("the model is not better than before beyond the intervals")
    if seen:
        say(f"held-out tasks were trained on, so the rates show nothing: {', '.join(seen)}")
    return GOOD if better and not seen else BAD


def say(text: str) -> None:
    """One line of progress."""
    print(f"==> {text}", file=sys.stderr, flush=True)


async def sandbox() -> str:
    """The back end that the commands will choose. Raises `PrerequisiteError` where there is none."""
    provider = open_provider()
    await provider.close()
    return provider.name


def require_room_to_train(settings_file: Path, folder: Path) -> None:
    """Look early whether the disk holds what training will keep. Raises `PrerequisiteError` where it does not."""
    config = resolve({}, config=settings_file).config
    require_room(folder / "runs" / "train", config, resolve_model(config.model, progress=say))


def main(settings_file: Path, folder: Path) -> int:
    """Run everything that is not done yet; the exit status of the command line's table."""
    settings = tomllib.loads(settings_file.read_text(encoding="utf-8"))
    room = disk()
    if room.state != "ok":
        say(f"disk_full: {room.detail} ({room.fix})")
        return MISSING
    try:
        require_room_to_train(settings_file, folder)
        say(f"sandboxes: {asyncio.run(sandbox())}")
    except EnvsdkError as error:
        say(f"{error.code}: {error}")
        return error.exit_code
    folder.joinpath("done").mkdir(parents=True, exist_ok=True)
    os.environ["ENVSDK_REGISTRY"] = f"sqlite:///{folder / 'registry.sqlite'}"
    with alone(folder):
        return run_all(settings, settings_file, folder)


def run_all(settings: dict[str, Any], settings_file: Path, folder: Path) -> int:
    """Run the stages in order; the exit status."""
    results = Results()
    everything = list(stages(settings, settings_file, folder))
    try:
        for number, stage in enumerate(everything, start=1):
            run_stage(stage, f"{number}/{len(everything)}", results, folder, later=everything[number:])
    except StageError as failed:
        if failed.status < 0:
            name = signal.Signals(-failed.status).name
            why = " (as the kernel does where memory runs out)" if name == "SIGKILL" else ""
            say(f"the stage {failed.stage!r} was killed by {name}{why}; `make demo` goes on with it")
            return UNDECIDED
        say(f"the stage {failed.stage!r} failed with status {failed.status}; `make demo` tries it again")
        return failed.status
    return conclude(results, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run the demonstration.")
    parser.add_argument("--settings", type=Path, default=Path(__file__).with_name("demo.toml"))
    parser.add_argument("--folder", type=Path, default=ROOT / "demo")
    given = parser.parse_args()
    try:
        status = main(given.settings.absolute(), given.folder.absolute())
    except KeyboardInterrupt:
        say("interrupted; `make demo` goes on where this stopped")
        status = INTERRUPTED
    sys.exit(status)

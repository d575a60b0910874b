"""Many episodes at once, some of whose commands hang or kill their shell: nothing lost, nothing left, classes exact.

    python -m benchmarks.episodes_in_flight --sandbox bubblewrap --episodes 200 --commands 50

Every episode acquires a box, runs its commands, ends in a way that is fixed beforehand, and is verified in a fresh
box. One command in twenty hangs and is stopped at its limit, one in a hundred kills its shell. Printed as JSON:
commands a second, results that were not what the command does, outcomes that are not what the end calls for, boxes
and processes left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envsdk.episode.agents import AgentEnd
from envsdk.episode.clocks import EpisodeClock
from envsdk.episode.record import EpisodeRecord, PolicyId
from envsdk.episode.run import run_episode
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import ExecResult, Sandbox
from envsdk.spec.load import load_task
from envsdk.spec.model import Task

HANG_S = 1.0
NAP_S = 617  # a length that no other program here sleeps for: what is left behind is found by it
TOML = f"""schema_version = "1.4"
artifacts = ["/app/total.txt"]
[task]
name = "benchmarks/in-flight"
[agent]
timeout_sec = 600.0
user = "agent"
[verifier]
timeout_sec = 120.0
environment_mode = "separate"
[environment]
docker_image = "{BASE_IMAGE}"
cpus = 1
memory_mb = 256
"""
TEST = "#!/bin/sh\ngrep -qx 42 /app/total.txt 2>/dev/null && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
ENDS = {  # share of the episodes, and the outcome that each end calls for
    "work": (0.6, ("model_success", "finished")),
    "no work": (0.2, ("model_failure", "finished")),
    "hang after work": (0.1, ("model_success", "step_timeout")),
    "hang without work": (0.1, ("model_failure", "step_timeout")),
}


@dataclass
class Storm:
    """An agent that runs ``commands`` commands, some of them hanging or killing their shell, and ends as it is told."""

    end: str
    commands: int
    dice: random.Random
    name: str = "storm"
    policy: PolicyId = field(default_factory=lambda: PolicyId(model="storm"))
    wrong: list[str] = field(default_factory=list)
    ran: int = 0

    def needs_sandbox(self, task: Task) -> bool:
        """Always: it acts in a box."""
        return bool(task.slug)

    async def act(self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock) -> AgentEnd:  # noqa: ARG002
        """Run the commands, then end."""
        assert sandbox is not None
        for number in range(self.commands):
            kind = self.dice.choices(["echo", "hang", "kill"], [0.94, 0.05, 0.01])[0]
            with clock.held_by("tool"):
                await self._one(sandbox, kind, number)
        if self.end in {"work", "hang after work"}:
            await sandbox.exec("echo 42 > /app/total.txt")
        if not self.end.startswith("hang"):
            return AgentEnd("final_answer")
        with clock.held_by("tool"):
            last = await sandbox.exec(f"sleep {NAP_S}", timeout_s=HANG_S)
        return AgentEnd("step_deadline" if last.timed_out else "final_answer")

    async def _one(self, box: Sandbox, kind: str, number: int) -> None:
        text = f"{number} {self.dice.random()}"
        command = {"echo": f"echo '{text}'", "hang": f"sleep {NAP_S} & sleep {NAP_S}", "kill": "kill -9 $$"}[kind]
        result = await box.exec(command, timeout_s=HANG_S if kind == "hang" else 60.0)
        self.ran += 1
        if not _is_right(kind, text, result):
            self.wrong.append(f"{kind}: {result.model_dump(exclude={'stderr'})}")


def _is_right(kind: str, text: str, result: ExecResult) -> bool:
    if kind == "hang":
        return result.timed_out and result.exit_code is None
    if kind == "kill":
        return result.signal == 9 and not result.timed_out
    return result.exit_code == 0 and result.stdout == f"{text}\n".encode()


def task_in(folder: Path) -> Task:
    """The one task that all episodes attempt."""
    files = {"task.toml": TOML, "instruction.md": "Write 42 into /app/total.txt.\n", "tests/test.sh": TEST}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "tests/test.sh").chmod(0o755)
    return load_task(folder)


async def fly(name: str | None, episodes: int, commands: int, at_once: int, seed: int) -> dict[str, Any]:
    """Run them all and compare each end with what it calls for."""
    dice = random.Random(seed)
    ends = dice.choices(list(ENDS), [share for share, _ in ENDS.values()], k=episodes)
    storms = [Storm(end, commands, random.Random(seed * 1000 + place)) for place, end in enumerate(ends)]
    provider = open_provider(name)
    slots = asyncio.Semaphore(at_once)
    with tempfile.TemporaryDirectory(prefix="envsdk-in-flight-") as folder:
        task = task_in(Path(folder))

        async def one(storm: Storm) -> EpisodeRecord:
            async with slots:
                return await run_episode(task, storm, provider)

        began = time.monotonic()
        try:
            records = await asyncio.gather(*(one(storm) for storm in storms))
        finally:
            await provider.close()
        seconds = time.monotonic() - began
    misjudged = [
        f"{storm.end}: {record.outcome.outcome_class} {record.outcome.cause} {record.facts}"
        for storm, record in zip(storms, records, strict=True)
        if (record.outcome.outcome_class, record.outcome.cause) != ENDS[storm.end][1]
    ]
    ran = sum(storm.ran for storm in storms)
    return {
        "sandbox": provider.name,
        "episodes": len(records),
        "in_flight": at_once,
        "commands": ran,
        "seconds": round(seconds, 2),
        "commands_per_s": round(ran / seconds, 1),
        "wrong_results": [text for storm in storms for text in storm.wrong][:10],
        "misjudged": misjudged[:10],
        "outcomes": dict(Counter(record.outcome.outcome_class for record in records)),
        "left": left_behind(),
    }


def left_behind() -> list[str]:
    """Sleeping commands that outlived their box; containers are the reaper's own test."""
    listed = subprocess.run(
        ["pgrep", "-fx", f"sleep {NAP_S}"], capture_output=True, text=True, check=False
    ).stdout.split()
    return [f"process {pid}" for pid in listed]


def main() -> None:
    """Parse, fly, print; exit 1 where anything was lost, left or misjudged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sandbox", default=None)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--commands", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = asyncio.run(fly(given.sandbox, given.episodes, given.commands, given.at_once, given.seed))
    print(json.dumps(found, indent=2))
    if found["wrong_results"] or found["misjudged"] or found["left"] or found["episodes"] != given.episodes:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

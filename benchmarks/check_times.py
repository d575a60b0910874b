"""What checking costs: a text answer, a container task against its own verifier runs, many tasks on more than one core.

    python benchmarks/check_times.py [--tasks 100] [--sandbox bubblewrap|docker]

All tasks are drawn from the bundled families or are a labelled miniature. Times of text answers are those of a process
that has loaded everything, and whose verifier runs already ("start-up aside"); all else are ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from envsdk.authoring.find import registered_families
from envsdk.checks.catalogue import CHECKS
from envsdk.checks.check import Check
from envsdk.checks.engine import ask_check, check_tasks
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task
from envsdk.spec.model import Task
from tests.labelled.catalogue import CASES
from tests.labelled.mini import write

NEW_INTERPRETER = {"clock", "hash_seed"}
"""Checks of a Python verifier that start interpreters of their own."""
REPEATS = 5
TEXT_REPEATS = 30


async def ask(task: Task, provider: SandboxProvider | None, checks: Sequence[Check]) -> tuple[float, int, float]:
    """Seconds on the clock, verifier runs, and seconds within those."""
    start = time.monotonic()
    async with Stage(task, provider) as stage:
        await asyncio.gather(*(ask_check(check, stage) for check in checks if not check.alone))
        for check in checks:
            if check.alone:
                await ask_check(check, stage)
        return time.monotonic() - start, stage.runs, stage.verify_s


async def text_answers(folder: Path) -> None:
    family = registered_families()["count-letters"]
    task = family.draw(seed=0, level=family.complete({}), dest=folder)
    quick = [check for check in CHECKS if check.id not in NEW_INTERPRETER]
    first_s, _, _ = await ask(task, None, CHECKS)
    warm = [await ask(task, None, quick) for _ in range(TEXT_REPEATS)]
    every = [(await ask(task, None, CHECKS))[0] for _ in range(TEXT_REPEATS)]
    quick_s = [seconds for seconds, *_ in warm]
    print(f"text answer, {warm[0][1]} verifier runs, no new interpreter: {middle(quick_s)}")
    print(f"text answer, all checks, interpreters warm: {middle(every)}; the first time: {first_s:.2f} s")


def middle(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.3f} s (median of {len(seconds)}, at most {max(seconds):.3f} s)"


async def container_task(folder: Path, provider: SandboxProvider, name: str) -> None:
    task = load_task(write(next(case for case in CASES if case.id == name), folder))
    await ask(task, provider, CHECKS[:1])  # the image is built
    wall_s, runs, verify_s = await ask(task, provider, CHECKS)
    single: list[float] = []
    async with Stage(task, provider) as stage:
        await stage.oracle()
        for _ in range(REPEATS):
            start = time.monotonic()
            await stage.play(Scene(after_oracle=True))
            single.append(time.monotonic() - start)
    one_s = statistics.median(single)
    print(f"{name}: {wall_s:.2f} s for {runs} verifier runs; one takes {one_s * 1000:.0f} ms with its sandbox")
    alone = f"{wall_s / verify_s:.2f} times the scripts alone"
    print(f"    {wall_s / (runs * one_s):.2f} times those one after the other, {alone}")


async def many(folder: Path, count: int) -> None:
    families = registered_families()
    tasks = []
    for name in ("count-letters", "upper-word"):
        family = families[name]
        tasks += family.draw_many(seeds=range(count // 2), level=family.complete({}), dest=folder)
    await check_tasks(tasks[:2], None, fresh=True)  # verifiers run already
    took = {}
    for at_once in (1, os.cpu_count() or 1):
        start = time.monotonic()
        await check_tasks(tasks, None, fresh=True, at_once=at_once)
        took[at_once] = time.monotonic() - start
    start = time.monotonic()
    await check_tasks(tasks, None)
    again_s = time.monotonic() - start
    said = ", ".join(f"{at_once} at once {seconds:.1f} s" for at_once, seconds in took.items())
    print(f"{len(tasks)} text tasks: {said}; unchanged, asked again: {again_s:.2f} s")


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--sandbox", default="bubblewrap")
    options = parser.parse_args()
    provider = open_provider(options.sandbox)
    try:
        with tempfile.TemporaryDirectory(prefix="envsdk-times-") as folder:
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.sandbox}")
            await text_answers(Path(folder) / "one")
            for name in ("good-status-or-code", "good-skips-none"):
                await container_task(Path(folder), provider, name)
            await many(Path(folder) / "many", options.tasks)
    finally:
        await provider.close()


if __name__ == "__main__":
    asyncio.run(main())

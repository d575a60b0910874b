"""What a user's type checker must see in the public API; never run, only checked by `tests/typing/test_public_api.py`.

Decorators keep the signature of what they decorate, results have types, and nothing public is `Any`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import assert_type

from envsdk import (
    AgentSpec,
    Draw,
    Family,
    Script,
    Task,
    TaskSpec,
    family,
    find_tasks,
    load_task,
    load_tasks,
    oracle,
    registered_families,
    task,
    verifier,
)
from envsdk.authoring.state import State
from envsdk.episode.record import EpisodeRecord
from envsdk.graders import Verdict, numeric
from envsdk.outcome import classify
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import ExecResult, SandboxProvider, SandboxSpec
from registry.client import RegistryClient, open_registry


@verifier
def is_sum(answer: str, *, total: int) -> float:
    return float(answer.strip() == str(total))


@verifier(kind="state", low=-1.0)
def is_sorted(state: State, *, lines: list[str]) -> float:
    return float(state.read("/app/names.txt").decode().split("\n") == lines)


assert_type(is_sum("3", total=3), float)
is_sum("3", totl=3)  # type: ignore[call-arg]


@task(verifier=is_sum)
def add() -> Draw:
    return Draw(instruction="Add: 1 + 2", params={"total": 3}, oracle="3", wrong=["4"])


assert_type(add(), Draw)
Draw(instruction="x", orcale="3")  # type: ignore[call-arg]


@task(verifier=Script("echo 1 > /logs/verifier/reward.txt"))
def scripted() -> Draw:
    return Draw(instruction="Do it.")


@oracle(scripted)
def solve(draw: Draw) -> str:
    return draw.instruction


@family(verifier=is_sum, levels={"terms": (2, 5)}, agent=AgentSpec(protocol="answer"))
def sums(rng: random.Random, *, terms: int) -> Draw:
    return Draw(instruction=f"Add {terms} numbers", params={"total": rng.randint(1, 9)}, oracle="3")


assert_type(sums(random.Random(1), terms=2), Draw)
sums(random.Random(1), terms="2")  # type: ignore[arg-type]

assert_type(load_task(Path("my-task")), Task)
assert_type(load_task(Path("my-task")).spec, TaskSpec)
assert_type(load_tasks([Path("tasks")]).tasks, tuple[Task, ...])
assert_type(find_tasks("sums.py", Path("out")), list[Task])
assert_type(registered_families(), dict[str, Family])
assert_type(numeric("3", "3.0"), Verdict)
assert_type(classify({}).reward, float | None)
assert_type(open_provider(), SandboxProvider)
assert_type(open_registry("sqlite:///x"), RegistryClient)


async def use_a_sandbox() -> None:
    provider = open_provider("docker")
    box = await provider.acquire(SandboxSpec(image="debian:bookworm-slim"))
    result = await box.exec("ls")
    assert_type(result, ExecResult)
    assert_type(result.stdout, bytes)
    assert_type(result.exit_code, int | None)


def rewards(records: Sequence[EpisodeRecord]) -> list[float]:
    # Absent is None, never 0: a checker makes the caller say what becomes of it.
    sum(record.outcome.reward for record in records)  # type: ignore[misc]
    return [record.outcome.reward for record in records if record.outcome.reward is not None]

"""Control runs: what is asked, how often, and what is remembered."""

from __future__ import annotations

import asyncio
from pathlib import Path

from envsdk.episode.controls import control_runs
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import SandboxSpec
from envsdk.spec.model import Task
from envsdk.verifying.artifacts import capture
from envsdk.verifying.verdict import EndState, Verdict
from tests.fakes.sandbox import FakeProvider, Faults
from tests.fakes.tasks import script_task, text_task

FAILED = Verdict("error", code="missing_reward")
PICKY = """#!/bin/sh
grep -q evil /app/total.txt 2>/dev/null && exit 1
grep -qx 42 /app/total.txt 2>/dev/null && r=1 || r=0
echo $r > /logs/verifier/reward.txt
"""


async def left(provider: FakeProvider, folder: Path, text: str) -> EndState:
    box = await provider.acquire(SandboxSpec(image="fake"))
    await box.exec(f"echo {text} > /app/total.txt")
    artifacts = await capture(box, ["/app/total.txt"], folder)
    await box.close()
    return EndState(artifacts=artifacts)


async def test_a_state_that_breaks_it_fails_twice_and_the_others_are_scored(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path / "task", test=PICKY)
    controls, runs = await control_runs(task, await left(provider, tmp_path / "end", "evil"), provider, FAILED)
    assert runs == 2
    assert [(c["state"], c["status"], c["reward"]) for c in controls] == [
        ("pristine", "scored", 0.0),
        ("oracle", "scored", 1.0),
    ]
    assert provider.open_count == 0


async def test_a_state_that_is_scored_the_second_time_asks_no_further(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path / "task", test=PICKY)
    controls, runs = await control_runs(task, await left(provider, tmp_path / "end", "42"), provider, FAILED)
    assert (runs, [(c["state"], c["reward"]) for c in controls]) == (1, [("same", 1.0)])


async def test_other_states_are_asked_once_for_many_episodes_at_once(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path / "task", test=PICKY)
    state = await left(provider, tmp_path / "end", "evil")
    before = len(provider.handed_out)
    results = await asyncio.gather(*(control_runs(task, state, provider, FAILED) for _ in range(5)))
    assert all(result == results[0] for result in results)
    oracles = [box for box in provider.handed_out[before:] if any("/solution/solve.sh" in c for c in box.commands)]
    assert len(oracles) == 1


async def test_a_waiter_that_is_cancelled_takes_nothing_from_the_others(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path / "task", test=f"{PICKY}sleep 0.2\n")
    state = await left(provider, tmp_path / "end", "evil")
    running = [asyncio.create_task(control_runs(task, state, provider, FAILED)) for _ in range(2)]
    await asyncio.sleep(0.3)
    running[0].cancel()
    controls, runs = await running[1]
    assert (runs, len(controls)) == (2, 2)


async def test_trouble_of_the_machinery_is_no_word_of_the_verifiers_and_is_not_remembered(tmp_path: Path) -> None:
    faults = Faults()
    provider = FakeProvider(faults=faults)
    task = script_task(tmp_path / "task", test=PICKY)
    state = await left(provider, tmp_path / "end", "evil")
    # Asked for in order: the verifier's box for the same state, then one for the pristine state, which is refused.
    controls = await _with_refusals(task, state, provider, faults)
    assert [control["state"] for control in controls] == ["oracle"]
    controls, _ = await control_runs(task, state, provider, FAILED)
    assert [control["state"] for control in controls] == ["pristine", "oracle"]


async def _with_refusals(
    task: Task, state: EndState, provider: FakeProvider, faults: Faults
) -> list[dict[str, object]]:
    acquire, count = provider.acquire, 0

    async def refuse_the_second(spec: SandboxSpec, *, timeout_s: float = 60.0) -> object:
        nonlocal count
        count += 1
        if count == 2:
            raise SandboxError("pool exhausted")
        return await acquire(spec, timeout_s=timeout_s)

    provider.acquire = refuse_the_second  # type: ignore[method-assign, assignment]
    controls, _ = await control_runs(task, state, provider, FAILED)
    provider.acquire = acquire  # type: ignore[method-assign]
    return controls


async def test_files_that_could_not_be_brought_call_for_no_control(tmp_path: Path) -> None:
    task = script_task(tmp_path / "task")
    verdict = Verdict("error", code="upload_failed")
    assert await control_runs(task, EndState(), FakeProvider(), verdict) == ([], 1)


async def test_a_task_without_oracle_has_one_control_less(tmp_path: Path) -> None:
    task = text_task(tmp_path, source="def judge(answer):\n    return 1 / len(answer)\n", answer=None)
    controls, runs = await control_runs(task, EndState(answer=b""), None, FAILED)
    assert (runs, [control["state"] for control in controls]) == (2, ["pristine"])

"""Tasks of several steps: one box, one instruction after another, a verdict after each.

Each step is played as a task of its own whose files lie in ``steps/<name>/``: first what lies in ``workdir/`` is put
in place and its ``setup.sh`` run, then the agent acts, then the step's verifier speaks. A reward below the step's
gate, or an end other than the agent's own, ends the episode there. Steps that were not begun count as the bottom of
the range, so that giving up early never pays. What a policy says in several steps is several conversations: such an
episode is evaluated, not trained on.
"""

from __future__ import annotations

import json
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from envsdk.episode.agents import AgentEnd
from envsdk.episode.attempt import Attempt
from envsdk.episode.box import until_healthy
from envsdk.episode.record import Turn
from envsdk.errors import SandboxError
from envsdk.files.scratch import scratch
from envsdk.sandboxes.base import Sandbox
from envsdk.spec.model import StepSpec, Task, VerifierSpec
from envsdk.verifying.results import clear_results
from envsdk.verifying.verdict import Verdict


async def play_steps(attempt: Attempt, closing: AsyncExitStack) -> None:
    """Play every step of the attempt's task; its facts then hold the combined verdict."""
    task = attempt.task
    rewards: dict[str, float] = {}
    turns: list[Turn] = []
    traces = 0
    with scratch("steps") as folder:
        for step in task.spec.steps:
            image = attempt.box.sandbox.spec.image if attempt.box else ""
            view = step_view(task, step, folder / step.name, image)
            if not await _prepare(attempt, task, step):
                return
            box = await attempt.act(view, closing)
            end = attempt.end or AgentEnd("exception")
            turns += end.turns
            traces += end.trace is not None
            if attempt.is_the_models():
                await attempt.grade(view, box)
            scored = attempt.facts["verifier"]
            if scored.get("status") != "scored":
                break
            rewards[step.name] = scored["reward"]
            if end.ended_by != "final_answer" or not _passes(step, scored):
                break
            if box is not None and task.spec.verifier.mode == "shared":
                await clear_results(box)  # the next step's agent never sees what judged this one
    _combine(attempt, rewards, turns, traces)


def step_view(task: Task, step: StepSpec, root: Path, image: str) -> Task:
    """A step as a task: its instruction, its clocks, its tests over the task's own, its oracle, in the box's image."""
    source = task.root / "steps" / step.name
    for name, origins in {"tests": (task.root / "tests", source / "tests"), "solution": (source / "solution",)}.items():
        for origin in origins:
            if origin.is_dir():
                shutil.copytree(origin, root / name, symlinks=True, dirs_exist_ok=True)
    budget = task.spec.budget.model_copy(
        update={name: value for name in ("episode_s", "verify_s") if (value := getattr(step, name)) is not None}
    )
    container = task.spec.container
    if container is not None and image:  # what is made of it holds its set-up already
        container = container.model_copy(update={"image": image, "setup": ""})
    spec = task.spec.model_copy(
        update={
            "instruction": step.instruction,
            "budget": budget,
            "artifacts": step.artifacts or task.spec.artifacts,
            "container": container,
            "verifier": _verifier(task, step, root),
            "steps": (),
        }
    )
    oracle = "solution/solve.sh" if (root / "solution" / "solve.sh").is_file() else None
    # One verifier digest for each step: what is known of one step's verifier says nothing of another's.
    digests = task.digests.model_copy(update={"verifier": f"{task.digests.verifier}/{step.name}"})
    return task.model_copy(update={"spec": spec, "root": root, "oracle": oracle, "digests": digests})


def _verifier(task: Task, step: StepSpec, root: Path) -> VerifierSpec:
    """The task's verifier with the step's variables and, for a Python verifier, the step's params."""
    verifier = task.spec.verifier
    params = root / "tests" / "params.json"
    given = json.loads(params.read_bytes()) if verifier.kind != "script" and params.is_file() else verifier.params
    return verifier.model_copy(update={"env": {**verifier.env, **step.env}, "params": given})


async def _prepare(attempt: Attempt, task: Task, step: StepSpec) -> bool:
    """Open a step in the attempt's box; false where that failed, which is no end of the model's."""
    if attempt.box is None or not ((task.root / "steps" / step.name / "workdir").is_dir() or step.healthcheck):
        return True
    with attempt.clock.phase("setup"):
        try:
            await open_step(task, step, attempt.box.sandbox)
        except SandboxError as error:
            attempt.facts |= {"phase": "setup", "ended_by": "exception"}
            attempt.facts |= {
                "exception": {"kind": error.code, "note": str(error)[:500]},
                "verifier": {"status": "not_run"},  # what earlier steps earned is no reward of the whole
            }
            return False
    return True


async def open_step(task: Task, step: StepSpec, box: Sandbox) -> None:
    """Put a step's files into the box, run its set-up and wait until it is healthy.

    Raises:
        SandboxError: it does not get there (``setup_failed``, or the box's own failure).
    """
    source = task.root / "steps" / step.name / "workdir"
    workdir = task.spec.container.workdir if task.spec.container else "/app"
    if source.is_dir():
        await box.upload(source, workdir)
    if (source / "setup.sh").is_file():
        await _set_up(box, f"{workdir}/setup.sh", task.spec.budget.setup_s)
    if step.healthcheck is not None:
        await until_healthy(box, step.healthcheck, task.spec.budget.setup_s)


async def _set_up(box: Sandbox, script: str, budget_s: float) -> None:
    result = await box.exec(["/bin/sh", script], timeout_s=budget_s)
    await box.exec(["rm", "-f", script], user="root")
    if not result.ok:
        said = (result.stderr or result.stdout)[-300:].decode("utf-8", "replace")
        raise SandboxError(
            f"the step's set-up ended with {result.exit_code}: {said}", code="setup_failed", where=box.id
        )


def passes_gate(step: StepSpec, verdict: Verdict) -> bool:
    """What a step's verifier said lets the next step begin."""
    return verdict.reward is not None and _passes(step, {"reward": verdict.reward, "rewards": verdict.rewards})


def _passes(step: StepSpec, scored: dict[str, Any]) -> bool:
    named = {**scored.get("rewards", {}), "reward": scored["reward"]}
    return all(name in named and named[name] >= least for name, least in step.min_reward.items())


def _combine(attempt: Attempt, rewards: dict[str, float], turns: list[Turn], traces: int) -> None:
    """One verdict of all steps, where every step that was begun has one."""
    spec = attempt.task.spec
    last = attempt.end or AgentEnd("exception")
    attempt.end = AgentEnd(last.ended_by, tuple(turns), facts=last.facts, trace=last.trace if traces == 1 else None)
    if traces > 1:
        attempt.facts["tokens"] = {"complete": False}
    verifier = attempt.facts["verifier"]
    if verifier.get("status") != "scored":
        return
    each = [rewards.get(step.name, spec.verifier.low) for step in spec.steps]
    reward = each[-1] if spec.step_reward == "final" else sum(each) / len(each)
    verifier |= {"reward": reward, "rewards": {"reward": reward, **rewards}}

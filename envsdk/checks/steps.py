"""Tasks of several steps: a stage for each step, and one result of what is found on all of them.

A step is a task of its own, whose agent begins where the oracles of the steps before it ended
(`envsdk.checks.opening`). So each question is asked of each step's verifier; a fault in one is a fault of the task.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from envsdk.checks.check import Finding, not_assessed, undecided
from envsdk.checks.opening import Opening
from envsdk.checks.report import CheckOutcome, CheckResult
from envsdk.checks.shared import Shared
from envsdk.checks.stage import Stage
from envsdk.episode.steps import step_view
from envsdk.errors import EnvsdkError
from envsdk.files.scratch import scratch
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import StepSpec, Task
from envsdk.verifying.pristine import image_of

_GRAVEST: tuple[CheckOutcome, ...] = ("fail", "error", "skipped", "pass")
"""The first that occurs on a step is the whole's; a step that the question has no meaning for has no say."""
Stages = Mapping[str, Stage]
"""Stages by the step's name; the one of a task without steps has no name."""


@asynccontextmanager
async def set_stages(
    task: Task, provider: SandboxProvider | None, *, repeats: int = 10, shared: Shared | None = None
) -> AsyncIterator[Stages]:
    """A task's stages, closed when the context is left."""
    async with AsyncExitStack() as closing:
        if not task.spec.steps:
            yield {"": await closing.enter_async_context(Stage(task, provider, repeats=repeats, shared=shared))}
            return
        folder = closing.enter_context(scratch("steps"))
        image, missing = await _image(task, provider)
        stages: dict[str, Stage] = {}
        before: tuple[tuple[StepSpec, Task], ...] = ()
        for step in task.spec.steps:
            view = _view(task, step, folder / step.name, image)
            opening = Opening(task, step, before, missing or _closed(before))
            stage = Stage(view, provider, repeats=repeats, shared=shared, opening=opening)
            stages[step.name] = await closing.enter_async_context(stage)
            before += ((step, view),)
        yield stages


async def _image(task: Task, provider: SandboxProvider | None) -> tuple[str, Finding | None]:
    """The image of every step's box, or why there is none."""
    if task.spec.container is None or provider is None:
        return "", None
    try:
        return await image_of(task, provider), None
    except EnvsdkError as error:
        return "", undecided(str(error), code=error.code)


def _view(task: Task, step: StepSpec, root: Path, image: str) -> Task:
    root.mkdir()
    view = step_view(task, step, root, image)
    if (task.root / "environment").is_dir():
        (root / "environment").symlink_to((task.root / "environment").resolve())  # for rules that read it
    return view


def _closed(before: tuple[tuple[StepSpec, Task], ...]) -> Finding | None:
    """Why a step's begin is not known."""
    for step, view in before:
        if view.oracle is None and view.spec.container is not None:
            return not_assessed(f"step {step.name} has no oracle: what this step begins with is not known")
    return None


def together(found: Mapping[str, CheckResult]) -> CheckResult:
    """One result of a check that was asked of every step: the gravest outcome, with each step's finding as evidence."""
    meant = {name: result for name, result in found.items() if not _is_meaningless(result)} or dict(found)
    outcome = next(outcome for outcome in _GRAVEST if any(result.outcome == outcome for result in meant.values()))
    telling = {name: result for name, result in meant.items() if result.outcome == outcome}
    evidence: dict[str, Any] = {"steps": [_row(name, result) for name, result in found.items()]}
    for name, result in telling.items():
        evidence |= {f"{name}: {key}": value for key, value in result.evidence.items() if key != "assessed"}
    if any(not result.evidence.get("assessed", True) for result in telling.values()):
        evidence["assessed"] = False
    first = next(iter(telling.values()))
    same = len(telling) > 1 and len({result.why for result in telling.values()}) == 1
    return CheckResult(
        check=first.check,
        outcome=outcome,
        why=f"{_named(telling)}: {first.why}" if same else "; ".join(f"step {n}: {r.why}" for n, r in telling.items()),
        fix=first.fix,
        evidence=evidence,
        seconds=round(sum(result.seconds for result in found.values()), 3),
    )


def _named(found: Mapping[str, CheckResult]) -> str:
    return f"steps {', '.join(found)}"


def _is_meaningless(result: CheckResult) -> bool:
    return result.outcome == "skipped" and bool(result.evidence.get("assessed", True))


def _row(name: str, result: CheckResult) -> dict[str, str]:
    return {"step": name, "outcome": result.outcome, "why": result.why}

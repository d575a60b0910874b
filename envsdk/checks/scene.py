"""A scene: what an agent might leave in a box, put there by the checks instead of by an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envsdk.checks.opening import run_solution
from envsdk.sandboxes.base import ExecResult, Sandbox
from envsdk.spec.model import Task

Hook = Callable[[Sandbox], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scene:
    """What an agent leaves, and how the verifier then runs.

    Attributes:
        files: path -> content, written as the agent; for a task without a container the answer's path alone.
        script: a shell script run as the agent after that.
        solution: a folder whose ``solve.sh`` is run as the agent after that, as the oracle's is.
        after_oracle: start from what the oracle left instead of the pristine image.
        env, faketime: as `envsdk.verifying.verify`.
        before_start: called with the box right before the verifier starts.
        verify_s: a shorter limit than the task's for the verifier.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    script: str = ""
    solution: Path | None = None
    after_oracle: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    faketime: str | None = None
    before_start: Hook | None = None
    verify_s: float | None = None


async def set_scene(task: Task, box: Sandbox, scene: Scene) -> ExecResult | None:
    """Write the scene's files and run its scripts as the agent.

    Returns how the last script ended, `None` where there is none. Raises `SandboxError`.
    """
    user = task.spec.agent.user
    folders = sorted({str(Path(path).parent) for path in scene.files})
    if folders:
        await box.exec(["mkdir", "-p", "--", *folders], user=user, cwd="/")
    modes = await _permissions(box, scene.files) if scene.after_oracle else {}
    for path, content in scene.files.items():
        await box.write(path, content, mode=modes.get(path, 0o644), user=user)
    ended = None
    if scene.script:
        ended = await box.exec(scene.script, user=user, timeout_s=task.spec.budget.episode_s)
    if scene.solution is not None:
        ended = await run_solution(task, box, scene.solution)
    return ended


async def _permissions(box: Sandbox, paths: Iterable[str]) -> dict[str, int]:
    """Of the files that are there: what is written in a file's place keeps its permissions."""
    listed = await box.exec(["stat", "-c", "%a %n", "--", *paths], user="root", cwd="/")
    rows = (line.partition(" ") for line in listed.stdout.decode("utf-8", "surrogateescape").split("\n"))
    return {path: int(mode, 8) for mode, _, path in rows if mode.isdecimal()}

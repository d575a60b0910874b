"""Where a step of a task begins: what the steps before it left, and its own files and set-up on top.

Earlier steps are played by their oracles, in order, each as an episode plays it: files, set-up, solution, and the
verifier where it shares the agent's box. Processes that they leave are ended, as they are before each verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envsdk.checks.check import Finding
from envsdk.episode.steps import open_step
from envsdk.sandboxes.base import ExecResult, Sandbox, SandboxProvider, SandboxSpec, Snapshot
from envsdk.spec.model import StepSpec, Task
from envsdk.verifying.results import clear_results
from envsdk.verifying.script import run_script

SOLUTION_DIR = "/solution"
SOLVE = "solve.sh"


@dataclass(frozen=True, slots=True)
class Opening:
    """The way to the begin of one step.

    Attributes:
        task: the whole task.
        step: the step that begins.
        before: the steps before it, each with its view as a task of its own (`envsdk.episode.steps.step_view`).
        unknown: what every check of the step answers where the way is closed: an earlier step has no oracle, or there
            is no image.
    """

    task: Task
    step: StepSpec
    before: tuple[tuple[StepSpec, Task], ...] = ()
    unknown: Finding | None = None

    @property
    def is_last(self) -> bool:
        """No step comes after it."""
        return self.step == self.task.spec.steps[-1]

    @property
    def is_pristine(self) -> bool:
        """Nothing lies between the pristine image and the agent's first move."""
        has_files = (self.task.root / "steps" / self.step.name / "workdir").is_dir()
        return not (self.before or has_files or self.step.healthcheck)

    async def begin(self, provider: SandboxProvider, spec: SandboxSpec) -> Sandbox:
        """A box in which the step begins. Raises `SandboxError`."""
        box = await provider.acquire(spec, timeout_s=self.task.spec.budget.acquire_s)
        try:
            await self._play(box)
        except BaseException:
            await box.close()  # nobody else knows of it
            raise
        return box

    async def freeze(self, provider: SandboxProvider, spec: SandboxSpec) -> Snapshot:
        """Such a box, to start from. Raises `SandboxError`."""
        box = await self.begin(provider, spec)
        try:
            return await box.snapshot()
        finally:
            await box.close()

    async def _play(self, box: Sandbox) -> None:
        for step, view in self.before:
            await open_step(self.task, step, box)
            await run_solution(view, box, view.root / "solution")
            await box.kill_agent_processes()
            if view.spec.verifier.kind == "script" and view.spec.verifier.mode == "shared":
                await run_script(view, box)
                await clear_results(box)
        await open_step(self.task, self.step, box)


async def run_solution(task: Task, box: Sandbox, folder: Path) -> ExecResult:
    """Run a folder's ``solve.sh`` as the agent, and take the folder away again. Raises `SandboxError`."""
    await box.upload(folder, SOLUTION_DIR, user="root")
    script = f"{SOLUTION_DIR}/{SOLVE}"
    await box.exec(f"chmod -R a+rX {SOLUTION_DIR} && chmod a+rx {script}", user="root", cwd="/")
    ended = await box.exec([script], user=task.spec.agent.user, timeout_s=task.spec.budget.episode_s)
    await box.exec(f"rm -rf {SOLUTION_DIR}", user="root", cwd="/")
    return ended

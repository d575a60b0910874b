"""Agents: what acts in a task's box. The one that is a policy is in `envsdk.episode.conversation`.

An agent says how its acting ended (`AgentEnd`), as facts; it never judges. It may raise `SandboxError` and
`EngineError`, which `envsdk.episode.run.run_episode` turns into facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from envsdk.episode.clocks import EpisodeClock
from envsdk.episode.record import PolicyId, TokenTrace, Turn
from envsdk.episode.toolbox import Toolbox
from envsdk.errors import SandboxError, UsageError
from envsdk.files.output import collect
from envsdk.sandboxes.base import ExecResult, Sandbox
from envsdk.spec.model import Task
from envsdk.verifying.verdict import answer_path

SOLUTION_DIR = "/solution"
OBSERVATION_CAP_BYTES = 2 << 10
OUTPUT_CAP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """How acting ended.

    Attributes:
        ended_by: what the harness saw first (`envsdk.outcome.facts.Facts`).
        answer: the answer's bytes, for protocols that have one.
        facts: further facts: command, exception, inference, tool_calls.
        trace: tokens, where the policy gives them.
    """

    ended_by: str
    turns: tuple[Turn, ...] = ()
    answer: bytes | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    trace: TokenTrace | None = None


@runtime_checkable
class Agent(Protocol):
    """Something that acts. ``policy`` says who, for the record; `needs_sandbox` whether this task takes a box."""

    name: str
    policy: PolicyId

    def needs_sandbox(self, task: Task) -> bool: ...

    async def act(self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock) -> AgentEnd: ...


@runtime_checkable
class ToolUser(Protocol):
    """An agent that can call the tools of a task's MCP servers; others use their box alone."""

    async def act_with_tools(
        self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock, tools: Toolbox
    ) -> AgentEnd: ...


def answers_only(task: Task) -> bool:
    """The task's end state is one text: no box is needed to leave it in."""
    verifier = task.spec.verifier
    return task.spec.agent.protocol == "answer" and not (verifier.kind == "script" and verifier.mode == "shared")


class NoopAgent:
    """Does nothing at all, and says that it is done."""

    name = "noop"
    policy = PolicyId(model="noop")

    def needs_sandbox(self, task: Task) -> bool:
        return not answers_only(task)

    async def act(self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock) -> AgentEnd:  # noqa: ARG002
        return AgentEnd("final_answer")


class AnswerAgent:
    """Gives one text as its answer, stored where the task's answer belongs."""

    def __init__(self, text: str, *, name: str = "answer") -> None:
        self.name = name
        self.policy = PolicyId(model=name)
        self._answer = text.encode("utf-8", "surrogateescape")

    def needs_sandbox(self, task: Task) -> bool:
        return not answers_only(task)

    async def act(self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock) -> AgentEnd:  # noqa: ARG002
        await store_answer(task, sandbox, self._answer)
        return AgentEnd(
            "final_answer", answer=self._answer, turns=(Turn(reply=self._answer.decode("utf-8", "replace")),)
        )


class ScriptAgent:
    """Runs one script as the agent's user in the work directory."""

    def __init__(self, script: bytes, *, name: str = "script") -> None:
        self.name = name
        self.policy = PolicyId(model=name)
        self._script = script

    def needs_sandbox(self, task: Task) -> bool:  # noqa: ARG002
        return True

    async def act(self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock) -> AgentEnd:
        """Raises `UsageError` (``needs_sandbox``) where there is no box to run in."""
        box = _needed(sandbox, self.name, task)
        path = "/tmp/envsdk-script.sh"  # noqa: S108 - inside the sandbox
        await box.write(path, self._script, mode=0o755)
        return await run_as_agent(box, clock, path)


class OracleAgent:
    """Runs the task's reference solution: ``solution/`` is uploaded, ``solve.sh`` started in the work directory.

    Where the end state is one text, the answer that lies beside the script is enough.
    """

    name = "oracle"
    policy = PolicyId(model="oracle")

    def needs_sandbox(self, task: Task) -> bool:
        return not (answers_only(task) and _stored_answer(task).is_file())

    async def act(self, task: Task, sandbox: Sandbox | None, clock: EpisodeClock) -> AgentEnd:
        """Raises `UsageError`: there is no oracle (``no_oracle``), or no sandbox for it (``needs_sandbox``)."""
        if task.oracle is None:
            raise UsageError("the task has no oracle", code="no_oracle", hint="add solution/solve.sh", where=task.slug)
        if not self.needs_sandbox(task):
            answer = _stored_answer(task).read_bytes()
            return AgentEnd("final_answer", answer=answer, turns=(Turn(reply=answer.decode("utf-8", "replace")),))
        box = _needed(sandbox, self.name, task)
        await box.upload(task.root / "solution", SOLUTION_DIR)
        script = f"/{task.oracle}"
        await box.exec(["chmod", "755", script], user="root", cwd="/")
        end = await run_as_agent(box, clock, script)
        await box.exec(["rm", "-rf", SOLUTION_DIR], user="root", cwd="/")
        return end


def _stored_answer(task: Task) -> Path:
    return task.root / "solution" / "answer.txt"


def _needed(sandbox: Sandbox | None, name: str, task: Task) -> Sandbox:
    if sandbox is None:
        raise UsageError(
            f"agent {name!r} needs a sandbox", code="needs_sandbox", hint="give a sandbox provider", where=task.slug
        )
    return sandbox


def sandbox_failure(error: SandboxError) -> tuple[str, dict[str, Any]]:
    """What ended an episode whose box failed while the agent acted, and the fact that says so."""
    kind = "no_space_left" if error.code == "disk_full" else error.code
    ended_by = "channel_lost" if error.code == "channel_lost" else "exception"
    return ended_by, {"exception": {"kind": kind, "note": str(error)[:500]}}


async def run_as_agent(box: Sandbox, clock: EpisodeClock, command: str) -> AgentEnd:
    """Run one command within the episode's clock and say how it ended."""
    seconds = clock.left_s()
    with clock.held_by("tool"):
        result = await box.exec(command, timeout_s=max(0.001, seconds), output_cap_bytes=OUTPUT_CAP_BYTES)
    turn = Turn(reply=command, observation=observe(result), exit_code=result.exit_code, act_s=round(result.seconds, 6))
    ended_by = "channel_lost" if result.channel_lost else "episode_deadline" if result.timed_out else "final_answer"
    return AgentEnd(ended_by, turns=(turn,), facts={"command": command_fact(command, result, seconds)})


async def store_answer(task: Task, sandbox: Sandbox | None, answer: bytes) -> None:
    """Put an answer at the task's answer path, where there is a box to hold it."""
    if sandbox is not None:
        await sandbox.write(answer_path(task.spec), answer)


def observe(result: ExecResult) -> str:
    """A command's end as the model reads it: output decoded with replacement and capped, then how it ended."""
    kept = collect([result.stdout, result.stderr], cap_bytes=OBSERVATION_CAP_BYTES)
    shown = replace(kept, total_bytes=max(kept.total_bytes, result.total_bytes)).shown()
    if result.timed_out:
        how = "the command was stopped at its time limit"
    elif result.signal is not None:
        how = f"killed by signal {result.signal}"
    else:
        how = f"exit code {result.exit_code}"
    separator = "" if not shown or shown.endswith("\n") else "\n"
    return f"{shown}{separator}[{how}]"


def command_fact(command: str, result: ExecResult, budget_s: float) -> dict[str, Any]:
    """The fact of the model's last command; text and output are for readers only."""
    return {
        "text": command[:500],
        "exit_code": result.exit_code,
        "signal": result.signal,
        "seconds": round(result.seconds, 3),
        "budget_s": round(budget_s, 3),
        "output": collect([result.stdout, result.stderr], cap_bytes=500).text,
    }

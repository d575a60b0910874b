"""One pytest session's machinery: an event loop, a sandbox back end, and the stage of the task that is being checked.

Checks of one task share a stage, so that its oracle runs once; the stage is closed when another task's turn comes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from envsdk.checks.catalogue import choose
from envsdk.checks.check import Check
from envsdk.checks.engine import ask_task
from envsdk.checks.report import CheckResult
from envsdk.checks.scene import Scene
from envsdk.checks.shared import Shared
from envsdk.checks.stage import Stage
from envsdk.checks.steps import Stages, set_stages
from envsdk.errors import UsageError
from envsdk.files.scratch import scratch
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import ExecResult, Sandbox, SandboxProvider
from envsdk.sandboxes.choose import wanted
from envsdk.sandboxes.memory import MemorySandbox, Replies
from envsdk.spec.load import load_task
from envsdk.spec.model import Task
from envsdk.verifying.verdict import Verdict

T = TypeVar("T")
_OWN_FAULTS = frozenset({"build_failed", "dockerfile_invalid", "needs_buildkit"})
"""Codes of a build that failed by the task's own Dockerfile, and would on every back end."""


class CheckSession:
    """What lives as long as a pytest session in one process. Everything is made when first needed."""

    def __init__(self, config: pytest.Config) -> None:
        self.strict = bool(config.getoption("--envsdk-strict") or config.getini("envsdk_strict"))
        self._sandbox = wanted(sandbox_name(config))
        self._repeats = config.getoption("--task-repeat") or int(config.getini("envsdk_repeat"))
        self._runner = asyncio.Runner()
        self._scratch = ExitStack()
        self._folder = self._scratch.enter_context(scratch("pytest"))
        self._tasks: dict[str, Task] = {}
        self._provider: SandboxProvider | None = None
        self._stages: tuple[str, Stages] | None = None
        self._set = contextlib.AsyncExitStack()
        self._shared = Shared()
        self._bad_builds: set[str] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, on this session's loop."""
        return self._runner.run(work)

    def ask(self, slug: str, make: Callable[[Path], Task], check: Check) -> tuple[Task, CheckResult, dict[str, str]]:
        """One check of one task, and what is known of its image and of the oracle's reward by then.

        Raises:
            PrerequisiteError: the task needs a sandbox and none can run here.
            EnvsdkError: the task cannot be loaded or drawn.
        """
        if slug not in self._tasks:
            self._tasks[slug] = make(self._folder / str(len(self._tasks)) / slug)
        task = self._tasks[slug]
        stages = self._stages_of(slug, task)
        result = self.run(ask_task(check, stages))
        known = {f"{step}_{name}" if step else name: v for step, s in stages.items() for name, v in s.known().items()}
        return task, result, known

    def is_first_word_of_bad_build(self, slug: str, result: CheckResult) -> bool:
        """The result is undecided since the task's own Dockerfile does not build, and none of this task said so yet."""
        codes = {value for name, value in result.evidence.items() if name == "code" or name.endswith(": code")}
        if result.outcome != "error" or not codes & _OWN_FAULTS or slug in self._bad_builds:
            return False
        self._bad_builds.add(slug)
        return True

    def provider_for(self, task: Task) -> SandboxProvider | None:
        """The back end, opened once, where the task needs one. Raises `PrerequisiteError`."""
        if task.spec.container is None:
            return None
        if self._provider is None:
            self._provider = self.run(_opened(self._sandbox))
        return self._provider

    def _stages_of(self, slug: str, task: Task) -> Stages:
        if self._stages is not None and self._stages[0] == slug:
            return self._stages[1]
        self._leave_stages()
        setting = set_stages(task, self.provider_for(task), repeats=self._repeats, shared=self._shared)
        self._stages = (slug, self.run(self._set.enter_async_context(setting)))
        return self._stages[1]

    def _leave_stages(self) -> None:
        self._stages = None
        self.run(self._set.aclose())

    def close(self) -> None:
        """End every sandbox and forget what was drawn."""
        self._leave_stages()
        if self._provider is not None:
            self.run(self._provider.close())
        self._runner.close()
        self._scratch.close()


def sandbox_name(config: pytest.Config) -> str | None:
    """The back end that was asked for by an option; `None` for the setting's, or the first that works."""
    return config.getoption("--task-sandbox") or config.getini("envsdk_sandbox") or None


def asked_checks(config: pytest.Config) -> tuple[Check, ...]:
    """The checks that were asked for, all by default. Raises `UsageError` (``unknown_check``)."""
    asked = config.getoption("--task-checks")
    names = asked.split(",") if asked else config.getini("envsdk_checks")
    return choose([name.strip() for name in names] if names else None)


def refuse_wrong_names(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for a check or a sandbox that no option can mean."""
    try:
        asked_checks(config)
        if sandbox_name(config):
            wanted(sandbox_name(config))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error


_KEY = pytest.StashKey[CheckSession]()


def session_of(config: pytest.Config) -> CheckSession:
    """The session of this process, made at first use."""
    if _KEY not in config.stash:
        config.stash[_KEY] = CheckSession(config)
    return config.stash[_KEY]


def close(config: pytest.Config) -> None:
    """Close the session, if there is one."""
    if _KEY in config.stash:
        config.stash[_KEY].close()
        del config.stash[_KEY]


async def _opened(name: str | None) -> SandboxProvider:
    return open_provider(name)


class RunVerifier:
    """The fixture ``run_verifier``: what a task's verifier says of an end state."""

    def __init__(self, session: CheckSession) -> None:
        self._session = session

    def __call__(
        self,
        task: Task | Path,
        *,
        answer: bytes | str | None = None,
        files: Mapping[str, bytes] | None = None,
        script: str = "",
        oracle: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Verdict:
        """Verify a plain ``answer``, or a box in which ``files`` were written and ``script`` was run by the agent.

        ``oracle`` starts from what the oracle left. Raises `EnvsdkError` where the task or a sandbox is at fault.
        """
        loaded = load_task(task) if isinstance(task, Path) else task
        stage = Stage(loaded, self._session.provider_for(loaded))
        given = dict(files or {})
        if answer is not None:
            given[stage.answer_path] = answer.encode() if isinstance(answer, str) else answer
        return self._session.run(_verdict(stage, Scene(given, script, None, oracle, env or {})))


async def _verdict(stage: Stage, scene: Scene) -> Verdict:
    async with stage:
        return await stage.play(scene)


class Box:
    """A sandbox for ordinary tests: the protocol's methods without ``await``.

    Attributes:
        sandbox: the sandbox itself, for what is written for the protocol.
    """

    def __init__(self, session: CheckSession, box: Sandbox) -> None:
        self._session = session
        self.sandbox = box

    def exec(self, command: str, *, user: str | None = None, timeout_s: float = 60.0) -> ExecResult:
        """The end of one command."""
        return self._session.run(self.sandbox.exec(command, user=user, timeout_s=timeout_s))

    def read(self, path: str) -> bytes:
        """A file's content. Raises `SandboxError` where there is none."""
        return self._session.run(self.sandbox.read(path))

    def write(self, path: str, data: bytes, *, user: str | None = None) -> None:
        """Write a file."""
        self._session.run(self.sandbox.write(path, data, user=user))


class TaskSandbox:
    """The fixture ``task_sandbox``: boxes from tasks' images, closed when the test ends."""

    def __init__(self, session: CheckSession) -> None:
        self._session = session
        self._open = contextlib.AsyncExitStack()

    def __call__(self, task: Task | Path) -> Box:
        """A fresh box of a task. Raises `PrerequisiteError` where no sandbox can run, `SandboxError` where it fails."""
        loaded = load_task(task) if isinstance(task, Path) else task
        stage = Stage(loaded, self._session.provider_for(loaded))
        return Box(self._session, self._session.run(self._open.enter_async_context(stage.box(Scene()))))

    def close(self) -> None:
        """Close every box."""
        self._session.run(self._open.aclose())


class FakeBoxes:
    """The fixture ``fake_sandbox``: boxes in memory, for tests that need no container."""

    def __init__(self, session: CheckSession) -> None:
        self._session = session

    def __call__(self, *, files: Mapping[str, bytes] | None = None, replies: Replies | None = None) -> Box:
        """A box that holds ``files`` and answers commands by ``replies``.

        A command without an answer raises `SandboxError`.
        """
        return Box(self._session, MemorySandbox(files=files, replies=replies))

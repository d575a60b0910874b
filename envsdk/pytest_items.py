"""What the pytest plugin collects: for each task one item a check, named ``slug[check]``, in a stable order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envsdk.authoring.declare import Declaration, drawn
from envsdk.authoring.families import Family
from envsdk.authoring.write import write_task
from envsdk.checks.check import Check
from envsdk.checks.gather import SEEDS
from envsdk.checks.render import MARKS, evidence_lines
from envsdk.checks.report import CheckResult
from envsdk.errors import EnvsdkError, PrerequisiteError, SpecError
from envsdk.pytest_session import asked_checks, sandbox_name, session_of
from envsdk.spec.load import load_task
from envsdk.spec.model import Task


class CheckFailedError(Exception):
    """A check found fault, or could not decide; carries its result."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__(f"{result.check}: {result.why}")
        self.result = result


@dataclass(frozen=True)
class TaskSource:
    """A task that is loaded or drawn when its first check runs, into a folder of the session."""

    slug: str
    make: Callable[[Path], Task]


class TaskDirectoryFile(pytest.File):
    """A ``task.toml`` and the checks of the task it describes."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item a check; an invalid task is one item that fails with its problems."""
        folder = self.path.parent
        try:
            task = load_task(folder)
        except EnvsdkError as error:
            yield InvalidTaskItem.from_parent(self, name=f"{folder.name}[valid]", error=error)
            return
        yield from _items(self, TaskSource(task.slug, lambda _: task), needs_box=task.spec.container is not None)


class DeclaredTasks(pytest.Collector):
    """A decorated function: one task, or a family drawn at a few seeds at its easiest and its hardest level."""

    def __init__(self, *, declaration: Declaration, **rest: Any) -> None:
        super().__init__(**rest)
        self.declaration = declaration

    def collect(self) -> Iterator[pytest.Item]:
        """Items sorted by slug, then in the checks' order."""
        for source in sorted(self._sources(), key=lambda source: source.slug):
            yield from _items(self, source, needs_box=self.declaration.container is not None)

    def _sources(self) -> Iterator[TaskSource]:
        declaration = self.declaration
        if not declaration.is_family:
            slug = declaration.name
            yield TaskSource(slug, lambda dest: write_task(declaration, drawn(declaration), dest, slug=slug))
            return
        family = Family(declaration)
        for level, seed in itertools.product(family.extremes(), SEEDS):
            yield TaskSource(
                family.slug(level, seed),
                lambda dest, level=level, seed=seed: family.draw(seed=seed, level=level, dest=dest),  # type: ignore[misc]
            )


class InvalidTaskItem(pytest.Item):
    """A task that does not load: fails with everything that is wrong with it."""

    def __init__(self, *, error: EnvsdkError, **rest: Any) -> None:
        super().__init__(**rest)
        self.error = error
        self.add_marker("task_check")

    def runtest(self) -> None:
        """Fail."""
        raise self.error

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Every problem, one a line."""
        del style
        error = excinfo.value
        problems = error.problems if isinstance(error, SpecError) else ()
        lines = [f"    {problem.get('file', '')}: {problem.get('message', '')}" for problem in problems]
        return "\n".join([f"✘ not a valid task: {error}", *lines])

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where it stands."""
        return self.path, None, self.name


class CheckItem(pytest.Item):
    """One check of one task."""

    def __init__(self, *, source: TaskSource, check: Check, needs_box: bool, **rest: Any) -> None:
        super().__init__(**rest)
        self.source = source
        self.check = check
        self.add_marker("task_check")
        if needs_box:
            self.add_marker("sandbox")
            if sandbox_name(self.config) != "bubblewrap":
                self.add_marker("docker")

    def runtest(self) -> None:
        """Ask the check; its result goes into the report's properties."""
        __tracebackhide__ = True
        session = session_of(self.config)
        try:
            task, result, known = session.ask(self.source.slug, self.source.make, self.check)
        except PrerequisiteError as error:
            if session.strict:
                raise
            pytest.skip(f"{error.message} ({error.hint})")
        self._note(task, result, known)
        if result.outcome == "skipped":
            pytest.skip(result.why)
        if result.outcome == "fail" or (result.outcome == "error" and session.strict):
            raise CheckFailedError(result)
        if session.is_first_word_of_bad_build(self.source.slug, result):
            raise CheckFailedError(result)
        if result.outcome == "error":
            pytest.skip(f"undecided: {result.why}")

    def _note(self, task: Task, result: CheckResult, known: dict[str, str]) -> None:
        self.user_properties += [
            ("check", result.check),
            ("outcome", result.outcome),
            ("seconds", f"{result.seconds:.3f}"),
            ("task_digest", task.digests.task),
            ("verifier_digest", task.digests.verifier),
            *known.items(),
            ("envsdk_slug", task.slug),
            ("envsdk_result", result.model_dump_json()),
        ]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Code, finding, evidence, fix and rerun line; no frames."""
        error = excinfo.value
        if not isinstance(error, CheckFailedError):
            return str(error) if isinstance(error, EnvsdkError) else super().repr_failure(excinfo, style)
        result = error.result
        lines = [f"{MARKS[result.outcome]} {self.source.slug}[{result.check}]: {result.why}"]
        lines += [f"    {line}" for line in evidence_lines(result)]
        lines += [f"fix: {result.fix}"] if result.fix else []
        return "\n".join([*lines, f"rerun: pytest '{self.nodeid}'"])

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where it stands."""
        return self.path, None, self.name


def _items(parent: pytest.Collector, source: TaskSource, *, needs_box: bool) -> Iterator[CheckItem]:
    for check in asked_checks(parent.config):
        yield CheckItem.from_parent(
            parent, name=f"{source.slug}[{check.id}]", source=source, check=check, needs_box=needs_box
        )

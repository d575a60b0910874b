"""Read task directories: Harbor's format, schema 1.0 to 1.4, with our fields in ``[metadata.envsdk]``.

A directory is read once: listed, parsed, validated and digested. Every problem is found in one go; nothing outside the
directory is opened and no link is followed. A directory is never executed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envsdk.digest import task_digests, tree_rows
from envsdk.errors import EnvsdkError, SpecError
from envsdk.frozen import Frozen
from envsdk.spec.directory import TaskDirectory, open_directory
from envsdk.spec.meaning import digest_tables, meaning
from envsdk.spec.model import Task, TaskSpec
from envsdk.spec.problems import Problem, from_validation, spec_error
from envsdk.spec.rules import check_spec
from envsdk.spec.tables import TaskToml
from envsdk.spec.task_files import check_files
from envsdk.spec.task_toml import check_toml, parse_toml

_SAID = 5
"""Problems of one directory that a message spells out; all of them are in the record."""


class Rejected(Frozen):
    """A directory that is no valid task, with every problem: ``code`` is the first one's, ``why`` says them all."""

    path: str
    code: str
    why: str
    problems: tuple[dict[str, str], ...] = ()


def rejection(path: str, error: EnvsdkError) -> Rejected:
    """What kept a task out, as a record: file, field and hint of each problem where the error lists some."""
    problems = error.problems if isinstance(error, SpecError) else ()
    said = [str(Problem.model_validate(problem)) for problem in problems[:_SAID]]
    more = [f"and {len(problems) - _SAID} more"] if len(problems) > _SAID else []
    why = "; ".join(said + more) or error.message + (f" ({error.hint})" if error.hint else "")
    return Rejected(path=path, code=error.code, why=why, problems=problems)


class LoadWarning(Frozen):
    """Something worth saying about a task that loads."""

    path: str
    code: str
    why: str
    field: str = ""


@dataclass(frozen=True)
class LoadResult:
    """What came of many directories. Nothing is left out in silence: each is in ``tasks`` or in ``rejected``."""

    tasks: tuple[Task, ...] = field(default=())
    rejected: tuple[Rejected, ...] = field(default=())
    warnings: tuple[LoadWarning, ...] = field(default=())


def load_task(path: Path) -> Task:
    """Read, validate and digest one task directory.

    Raises:
        SpecError: it is no valid task; ``problems`` lists every finding, ``code`` is the first one's.
        StoreError: a file cannot be read.
    """
    return load_with_warnings(path)[0]


def load_with_warnings(path: Path) -> tuple[Task, list[Problem]]:
    """As `load_task`, with the warnings. Raises as `load_task` does."""
    directory = open_directory(path)
    spec, raw, problems = read_spec(directory)
    errors = [problem for problem in problems if problem.severity == "error"]
    if spec is None or errors:
        raise spec_error(path, errors)
    task_part, verifier_part = digest_tables(raw, spec)
    rows = tree_rows(directory.root, directory.entries)
    digests = task_digests(rows, task_tables=task_part, verifier_tables=verifier_part)
    oracle = "solution/solve.sh" if directory.is_file("solution/solve.sh") else None
    return Task(spec=spec, digests=digests, root=directory.root, oracle=oracle), problems


def read_spec(directory: TaskDirectory) -> tuple[TaskSpec | None, dict[str, Any], list[Problem]]:
    """What a directory says, the raw tables, and every problem; the spec is `None` where an error forbids one."""
    problems = list(directory.problems)
    raw, found = parse_toml(directory)
    problems += found
    if raw is None:
        return None, {}, problems
    problems += check_toml(raw)
    if any(problem.code == "future_schema" for problem in problems):
        return None, raw, problems
    try:
        toml = TaskToml.model_validate(raw)
    except ValidationError as error:
        return None, raw, problems + from_validation(error, file="task.toml", model=TaskToml)
    beside, found = check_files(directory, toml)
    problems += found
    try:
        spec = meaning(toml, beside)
    except ValidationError as error:
        return None, raw, problems + from_validation(error, file="task.toml")
    return spec, raw, problems + check_spec(spec, toml)


def load_tasks(paths: Iterable[Path]) -> LoadResult:
    """Load every task directory at or under ``paths``, in a stable order; a faulty one does not disturb the others."""
    tasks: list[Task] = []
    rejected: list[Rejected] = []
    warnings: list[LoadWarning] = []
    for path in paths:
        for place in find_task_directories(path):
            try:
                task, found = load_with_warnings(place)
            except EnvsdkError as error:
                rejected.append(rejection(printable(place), error))
            else:
                tasks.append(task)
                warnings += [LoadWarning(path=printable(place), code=p.code, why=str(p)) for p in found]
    return LoadResult(tuple(tasks), tuple(rejected), tuple(warnings))


def find_task_directories(path: Path) -> Iterator[Path]:
    """``path`` if it is a task directory, else those below it, and every child folder in which there is none.

    Links are not followed and hidden folders are not entered. A path that holds no task is given back itself, so that
    loading it says why.
    """
    if (path / "task.toml").is_file() or not path.is_dir():
        yield path
        return
    found = False
    for child in sorted(path.iterdir(), key=lambda item: os.fsencode(item.name)):
        if child.name.startswith(".") or child.is_symlink() or not child.is_dir():
            continue
        found = True
        yield from find_task_directories(child)
    if not found:
        yield path


def printable(path: Path) -> str:
    """A path as text that can always be printed and stored: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")

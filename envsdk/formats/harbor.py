"""Harbor task directories in and out: our own format, so that both ways copy byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envsdk.errors import EnvsdkError
from envsdk.formats.canary import canaries, canary_warning
from envsdk.formats.result import ImportResult, Walk, free_place, quietly
from envsdk.spec.contents import read_contents
from envsdk.spec.dump import copy_task, dump_task
from envsdk.spec.load import LoadWarning, find_task_directories, load_with_warnings, printable, rejection
from envsdk.spec.model import Task


def import_harbor(source: Path, dest: Path, *, walk: Walk = quietly) -> ImportResult:
    """Copy every valid task directory at or under ``source`` to ``dest/<slug>``."""
    result = ImportResult()
    for place in walk(list(find_task_directories(source))):
        path = printable(place)
        try:
            task, found = load_with_warnings(place)
        except EnvsdkError as error:
            result.rejected.append(rejection(path, error))
            continue
        result.warnings += [LoadWarning(path=path, code=p.code, why=str(p), field=p.field) for p in found]
        result.add(path, lambda task=task, path=path: _copied(task, dest, path, result))  # type: ignore[misc]
    return result


def _copied(task: Task, dest: Path, path: str, result: ImportResult) -> Task:
    contents = read_contents(task.root)
    if marked := canaries(contents):
        result.warnings.append(LoadWarning(path=path, code="canary", why=str(canary_warning(marked))))
    return dump_task(task.spec, contents, free_place(dest, task.slug))


def export_harbor(tasks: Iterable[Task], dest: Path) -> list[Task]:
    """Copy tasks to ``dest/<slug>``.

    Raises:
        UsageError: two have one slug, or a folder is taken (code ``duplicate_slug``).
    """
    return [copy_task(task, free_place(dest, task.slug)) for task in tasks]

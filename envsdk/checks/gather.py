"""What there is to check behind a path or a name: task directories, Python files and modules, families."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envsdk.authoring.declare import Declaration
from envsdk.authoring.find import declared_in, import_source, registered_families, tasks_of
from envsdk.errors import EnvsdkError, UsageError
from envsdk.spec.load import LoadResult, Rejected, load_tasks
from envsdk.spec.model import Task

SEEDS = (0, 1)
"""Seeds at which a family is drawn, at its easiest and at its hardest level."""


def gather(sources: Iterable[str], dest: Path) -> LoadResult:
    """Load or draw every task behind ``sources``; one that cannot be is rejected by itself, the others are unharmed.

    Args:
        sources: paths of task directories or of folders of them, of ``.py`` files; names of modules or families.
        dest: a folder; what is drawn is written below it.

    Raises:
        UsageError: a source is none of these (code ``no_such_source``).
    """
    tasks: list[Task] = []
    rejected: list[Rejected] = []
    paths: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.suffix != ".py" and path.exists() and not _is_package(path):
            paths.append(path)
            continue
        try:
            declared = _declared(source)
        except EnvsdkError as error:
            if error.code == "no_such_source":
                raise
            rejected.append(Rejected(path=source, code=error.code, why=str(error)))
            continue
        for declaration in declared:
            try:
                tasks += tasks_of(declaration, dest, seeds=SEEDS)
            except EnvsdkError as error:
                path_of = source if source == declaration.name else f"{source}::{declaration.name}"
                rejected.append(Rejected(path=path_of, code=error.code, why=str(error)))
    loaded = load_tasks(paths)
    return LoadResult((*loaded.tasks, *tasks), (*loaded.rejected, *rejected), loaded.warnings)


def _is_package(path: Path) -> bool:
    """A Python package that can be imported by its name from here, and holds no task directory."""
    return (path / "__init__.py").is_file() and path.name == str(path) and not any(path.rglob("task.toml"))


def _declared(source: str) -> list[Declaration]:
    families = {} if source.endswith(".py") else registered_families()
    if source in families:
        return [families[source].declaration]
    if not source.endswith(".py") and not all(part.isidentifier() for part in source.split(".")):
        hint = "give a task directory, a .py file, a module, or a family"
        raise UsageError("no such path, module or family", code="no_such_source", where=source, hint=hint)
    return declared_in(import_source(source).__name__)

"""Find what installed packages and files declare: families by name, tasks of a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from envsdk.authoring.declare import Declaration, declarations, drawn
from envsdk.authoring.families import Family
from envsdk.authoring.write import write_task
from envsdk.digest import sha256_hex
from envsdk.errors import UsageError
from envsdk.spec.load import load_task
from envsdk.spec.model import Task
from envsdk.suggest import did_you_mean


def registered_families() -> dict[str, Family]:
    """Families of every installed package that offers some in the entry-point group ``envsdk.families``, by name.

    Raises:
        UsageError: two packages use one name (code ``duplicate_family``).
    """
    found: dict[str, Family] = {}
    for entry in sorted(entry_points(group="envsdk.families"), key=lambda item: item.value):
        for declaration in declared_in(entry.load().__name__):
            if not declaration.is_family:
                continue
            if declaration.name in found:
                both = f"{found[declaration.name].declaration.module} and {declaration.module}"
                raise UsageError(f"is in {both}", code="duplicate_family", where=declaration.name, hint="rename one")
            found[declaration.name] = Family(declaration)
    return found


def get_family(name: str) -> Family:
    """One family: an installed one by its name, or ``FILE.py``'s, ``FILE.py::NAME`` where the file declares several.

    Raises:
        UsageError: there is none of that name (code ``no_family``), the file declares several (``which_family``), or it
            cannot be imported.
    """
    path, _, wanted = name.partition("::")
    if path.endswith(".py"):
        return _family_of_file(path, wanted)
    families = registered_families()
    if name not in families:
        there = f"there are {', '.join(sorted(families))}; or give the .py file that declares it"
        raise UsageError(f"no family {name!r}", code="no_family", hint=did_you_mean(name, families) or there)
    return families[name]


def _family_of_file(path: str, name: str) -> Family:
    declared = declared_in(import_source(path).__name__)
    families = {item.name: Family(item) for item in declared if item.is_family}
    if not families:
        raise UsageError("declares no family", code="no_family", where=path, hint="decorate a function with @family")
    if not name and len(families) > 1:
        hint = f"one of {', '.join(f'{path}::{family}' for family in families)}"
        raise UsageError(f"declares {len(families)} families", code="which_family", where=path, hint=hint)
    name = name or next(iter(families))
    if name not in families:
        hint = did_you_mean(name, families) or f"there are {', '.join(families)}"
        raise UsageError(f"no family {name!r}", code="no_family", where=path, hint=hint)
    return families[name]


def find_tasks(source: str | Path | ModuleType, dest: Path, *, seeds: Iterable[int] = (0,)) -> list[Task]:
    """Write out what a module or Python file declares: every task, and of each family the easiest and the hardest.

    Args:
        source: a module, its name, or the path of a ``.py`` file, which is imported.
        dest: a folder; each task becomes a directory in it, named by its slug.
        seeds: at which families are drawn.

    Raises:
        UsageError: the source cannot be imported, or a draw cannot be written.
        SpecError: what was drawn is no valid task.
    """
    every = declared_in(import_source(source).__name__)
    return [task for declaration in every for task in tasks_of(declaration, dest, seeds=seeds)]


def tasks_of(declaration: Declaration, dest: Path, *, seeds: Iterable[int] = (0,)) -> list[Task]:
    """Write out what one declaration gives, as `find_tasks` does; raises as it does, but for importing."""
    if declaration.is_family:
        return draw_extremes(Family(declaration), dest, seeds=seeds)
    return [write_task(declaration, drawn(declaration), dest / declaration.name, slug=declaration.name)]


def one_task(source: str, dest: Path) -> Task:
    """The task of a directory, of ``FILE.py``, or of ``FILE.py::NAME`` where the file declares several.

    Raises:
        UsageError: nothing of that name (code ``no_task``), several without a name (``which_task``); else as
            `find_tasks`.
        SpecError: the directory is no valid task.
    """
    path, _, wanted = source.partition("::")
    if not path.endswith(".py"):
        return load_task(Path(source))
    named = [item for item in declared_in(import_source(path).__name__) if item.name == wanted and not item.is_family]
    if named:  # alone, whatever is wrong with the others
        return tasks_of(named[0], dest)[0]
    tasks = {task.slug: task for task in find_tasks(path, dest)}
    if not wanted and len(tasks) == 1:
        return next(iter(tasks.values()))
    if wanted in tasks:
        return tasks[wanted]
    there = f"one of {', '.join(f'{path}::{slug}' for slug in tasks)}" if tasks else "decorate one with @task"
    if wanted:
        hint = did_you_mean(wanted, tasks) or there
        raise UsageError(f"declares no task {wanted!r}", code="no_task", where=path, hint=hint)
    raise UsageError(f"declares {len(tasks)} tasks", code="which_task", where=path, hint=there)


def draw_extremes(family: Family, dest: Path, *, seeds: Iterable[int] = (0,)) -> list[Task]:
    """Distinct tasks of a family at its easiest and its hardest level, a folder each. Raises as `Family.draw` does."""
    numbers = tuple(seeds)
    return [task for level in family.extremes() for task in family.draw_many(seeds=numbers, level=level, dest=dest)]


def import_source(source: str | Path | ModuleType) -> ModuleType:
    """Import a module by name, or a file by path: a file once, whatever its name.

    Raises:
        UsageError: there is none (code ``no_such_source``), or it raises (``import_failed``).
    """
    if isinstance(source, ModuleType):
        return source
    path = Path(source)
    if path.suffix == ".py" and not path.is_file():
        raise UsageError("no such file", code="no_such_source", where=str(source), hint="check the path")
    try:
        return _import_file(path) if path.suffix == ".py" else importlib.import_module(str(source))
    except ModuleNotFoundError as error:
        if Path(source).suffix == ".py" or not f"{source}.".startswith(f"{error.name}."):
            raise _failed(source, error) from error  # it is there, and imports what is not
        raise UsageError(
            "no such path, module or family",
            code="no_such_source",
            where=str(source),
            hint="give a task directory, a .py file, a module, or a family",
        ) from error
    except Exception as error:
        # An author's module may raise anything; it is reported as that module's fault.
        raise _failed(source, error) from error


def _failed(source: str | Path, error: Exception) -> UsageError:
    why = f"{type(error).__name__}: {error}"
    return UsageError(f"cannot be imported: {why}", code="import_failed", where=str(source), hint="fix it")


def _import_file(path: Path) -> ModuleType:
    name = f"envsdk_authored_{sha256_hex(str(path.resolve()).encode())[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no loader for {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        # Half a module must not answer the next import; whatever the author's code raised goes on.
        del sys.modules[name]
        raise
    return module


def declared_in(module: str) -> list[Declaration]:
    """What a module or package, already imported, declares."""
    return [d for d in declarations() if d.module == module or d.module.startswith(f"{module}.")]

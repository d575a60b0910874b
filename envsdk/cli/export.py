"""``envsdk export``: tasks of a registry query, or of a folder, in another format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit
from envsdk.errors import PrerequisiteError
from envsdk.files.scratch import scratch
from envsdk.spec.model import Task

Query = Annotated[str, typer.Argument(metavar="QUERY", help="A registry query, or the path of task directories.")]
Dest = Annotated[Path, typer.Argument(metavar="DEST", help="Where to write.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def export() -> None:
    """Write tasks in another format."""


@app.command()
def harbor(query: Query, dest: Dest, *, as_json: JsonFlag = False) -> None:
    """Task directories that Harbor reads, one a task, under the folder DEST.

    Example: envsdk export harbor "status:learnable tag:shell" out
    """
    from envsdk.formats.harbor import export_harbor

    with _tasks(query) as tasks:
        count = len(export_harbor(tasks, dest))
    emit(success(exported=count, path=str(dest)), as_json=as_json, text=f"{count} exported to {dest}")


@app.command()
def dataset(query: Query, dest: Dest, *, as_json: JsonFlag = False) -> None:
    """One JSON row a task, in the file DEST, which Hugging Face datasets reads.

    Example: envsdk export dataset "family:sums" sums.jsonl
    """
    from envsdk.formats.dataset import export_dataset

    with _tasks(query) as tasks:
        count = export_dataset(tasks, dest)
    emit(success(exported=count, path=str(dest)), as_json=as_json, text=f"{count} exported to {dest}")


@contextmanager
def _tasks(query: str) -> Iterator[list[Task]]:
    """Tasks of a folder, all of them valid, or those that an installed registry finds."""
    if Path(query).exists():
        from envsdk.spec.load import find_task_directories, load_task

        yield [load_task(place) for place in find_task_directories(Path(query))]
        return
    entries = list(entry_points(group="envsdk.queries"))
    if not entries:
        hint = "pip install 'envsdk[registry]', or give a folder of tasks"
        raise PrerequisiteError("no registry is installed", code="extra_missing", where=query, hint=hint)
    with scratch("export") as folder:
        found = entries[0].load()(query, folder)
        if not found:
            typer.echo(f"no path is called {query!r}, and as a query of the registry it finds nothing", err=True)
        yield found

"""``envsdk import``: tasks of another format as task directories, with every rejection and its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.options import JsonFlag, finish
from envsdk.cli.progress import stderr_console, walked
from envsdk.errors import EnvsdkError, FaultyError, StoreError, UsageError
from envsdk.formats.result import ImportResult, Walk
from envsdk.spec.load import Rejected

Source = Annotated[Path, typer.Argument(metavar="SRC", help="What to read.")]
Dest = Annotated[Path, typer.Argument(metavar="DEST", help="Folder for the task directories.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def import_() -> None:
    """Read tasks from another format. Exit 1 where one is rejected; the others are there all the same."""


@app.command()
def harbor(source: Source, dest: Dest, *, as_json: JsonFlag = False) -> None:
    """Harbor task directories, at SRC or below it.

    Example: envsdk import harbor downloads/tasks my-tasks
    """
    from envsdk.formats.harbor import import_harbor

    _report(import_harbor(source, dest, walk=_walk()), as_json=as_json)


@app.command()
def dataset(
    source: Source,
    dest: Dest,
    *,
    column: Annotated[
        list[str] | None, typer.Option(metavar="KEY=COLUMN", help="Which column is instruction, answer, slug, wrong.")
    ] = None,
    name: Annotated[str, typer.Option(help="First part of slugs; default: the source's name.")] = "",
    grader: Annotated[str, typer.Option(help="How answers are compared: exact, numeric, choice, boxed ...")] = "exact",
    as_json: JsonFlag = False,
) -> None:
    """Rows of questions and answers: .jsonl, .json, .csv, or a folder that datasets saved.

    Example: envsdk import dataset sums.jsonl my-tasks --column instruction=question --column answer=result
    """
    from envsdk.formats.dataset import import_dataset

    pairs = [text.partition("=") for text in column or ()]
    if any(not (key and value) for key, _, value in pairs):
        raise UsageError("a column is given as KEY=COLUMN", code="bad_column_map", hint="--column answer=result")
    mapped = {key: value for key, _, value in pairs}
    _report(import_dataset(source, dest, columns=mapped, name=name, grader=grader, walk=_walk()), as_json=as_json)


@app.command("terminal-bench")
def terminal_bench(
    source: Source,
    dest: Dest,
    *,
    rule: Annotated[
        str, typer.Option(help="What scores: exit (the script's status) or parser (every test of pytest's summary).")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Terminal-Bench 1 task directories, at SRC or below it.

    Example: envsdk import terminal-bench downloads/tb my-tasks --rule parser
    """
    from envsdk.formats.terminal_bench import Rule, import_terminal_bench

    if rule not in ("exit", "parser"):
        raise UsageError(f"no scoring rule {rule!r}", code="bad_rule", hint="--rule exit, or --rule parser")
    known: Rule = "exit" if rule == "exit" else "parser"
    _report(import_terminal_bench(source, dest, rule=known, walk=_walk()), as_json=as_json)


@app.command("reasoning-gym")
def reasoning_gym(
    name: Annotated[str, typer.Argument(metavar="SRC", help="A dataset's name, such as basic_arithmetic.")],
    dest: Dest,
    *,
    size: Annotated[int, typer.Option(min=1, help="How many tasks to draw.")] = 32,
    seed: Annotated[int, typer.Option(help="The dataset's seed.")] = 0,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=JSON", help="A setting of the dataset.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Tasks of a reasoning-gym dataset, judged by its own scorer.

    Example: envsdk import reasoning-gym basic_arithmetic my-tasks --size 64 --set max_terms=3
    """
    from envsdk.formats.reasoning_gym import import_reasoning_gym, parse_settings

    settings = parse_settings(setting or ())
    result = import_reasoning_gym(name, dest, size=size, seed=seed, settings=settings, walk=_walk())
    _report(result, as_json=as_json)


@app.command()
def swe(
    source: Source,
    dest: Dest,
    *,
    workdir: Annotated[str, typer.Option(help="Where the repository lies in the images.")] = "/testbed",
    as_json: JsonFlag = False,
) -> None:
    """SWE-style rows: an image, an issue, a patch, tests by name.

    Example: envsdk import swe rows.jsonl my-tasks
    """
    from envsdk.formats.swe import import_swe

    _report(import_swe(source, dest, workdir=workdir, walk=_walk()), as_json=as_json)


def _walk() -> Walk:
    return walked(stderr_console(), "importing")


def _report(result: ImportResult, *, as_json: bool) -> None:
    """Print the summary; exit 1 where a task was rejected, 4 where none could be written."""
    tasks = [{"slug": t.slug, "path": str(t.root), "task_digest": t.digests.task} for t in result.tasks]
    lines = [f"rejected [{item.code}] {item.path}: {item.why}" for item in result.rejected]
    lines += [f"warning [{item.code}] {item.path}: {item.why}" for item in result.warnings]
    lines += [f"{n:>6} {kind:<8} {code}" for kind, codes in result.summary().items() for code, n in codes.items()]
    lines.append(f"{len(result.tasks)} imported, {len(result.rejected)} rejected, {len(result.warnings)} warnings")
    errors = [_error(item) for item in result.rejected]
    finish(
        errors,
        as_json=as_json,
        text="\n".join(lines),
        imported=len(tasks),
        rejected=[item.model_dump() for item in result.rejected],
        warnings=[item.model_dump() for item in result.warnings],
        summary=result.summary(),
        tasks=tasks,
    )


def _error(item: Rejected) -> EnvsdkError:
    """A task that could not be written is not a bad one."""
    kind = StoreError if item.code == "unwritable" else FaultyError
    return kind(item.why, code=item.code, where=str(item.path))

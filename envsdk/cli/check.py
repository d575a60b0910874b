"""``envsdk check``: prove the verifiers of tasks, and say what is wrong with those that cannot be trusted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from envsdk.cli.envelope import BAD, UNDECIDED, failure, success
from envsdk.cli.options import JsonFlag, SandboxOption, emit
from envsdk.cli.progress import counted, stderr_console, waited
from envsdk.errors import EnvsdkError, FaultyError
from envsdk.files.replace import write_whole
from envsdk.files.scratch import scratch

if TYPE_CHECKING:
    from envsdk.checks.report import CheckReport, CheckResult
    from envsdk.spec.load import LoadResult, Rejected
    from envsdk.spec.model import Task


def check(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Task directories, folders of them, .py files, modules, families."),
    ],
    *,
    checks: Annotated[str | None, typer.Option(metavar="A,B", help="Only these checks.")] = None,
    sandbox: SandboxOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="What cannot be decided counts as a failure.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask again even where nothing changed.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every check of every task.")] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML too.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a self-contained page too.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check tasks. Exit 0: all pass; 1: a check fails or a task is invalid; 4: something could not be decided.

    A task without an oracle is told as incomplete, and exits 0 where all passes that could be asked; --strict: 1.

    Examples: envsdk check my-task; envsdk check tasks --checks oracle,noop; envsdk check my-task --html report.html
    """
    from envsdk.checks.gather import gather
    from envsdk.checks.render import lines

    console = stderr_console()
    asked = None if checks is None else [name.strip() for name in checks.split(",") if name.strip()]
    with scratch("check") as folder:
        loaded = gather(sources, folder)
        reports = asyncio.run(_checked(loaded.tasks, asked, sandbox, strict=strict, fresh=fresh, console=console))
        places = [_place(task, sources, folder) for task in loaded.tasks]
    _write(reports, junit, html)
    text = [f"✘ {item.path}: {item.why} ({item.code})" for item in loaded.rejected]
    for report, place in zip(reports, places, strict=True):
        text += lines(report, place, every_check=verbose or len(reports) == 1)
    text.append(_closing(reports, loaded.rejected))
    emit(_envelope(reports, loaded), as_json=as_json, text="\n".join(text))
    verdicts = {report.verdict for report in reports}
    if "fail" in verdicts or loaded.rejected:
        raise typer.Exit(BAD)
    if verdicts & {"error", "incomplete"}:
        raise typer.Exit(UNDECIDED)


async def _checked(
    tasks: tuple[Task, ...],
    asked: list[str] | None,
    sandbox: str | None,
    *,
    strict: bool,
    fresh: bool,
    console: Console,
) -> list[CheckReport]:
    from envsdk.checks.catalogue import choose
    from envsdk.checks.engine import check_tasks
    from envsdk.checks.render import summary_line
    from envsdk.sandboxes import open_provider

    choose(asked)  # a wrong name is said before anything is started
    boxes = any(task.spec.container is not None for task in tasks)
    provider = open_provider(sandbox) if boxes else None
    try:
        answered: list[CheckResult] = []
        ended: list[CheckReport] = []

        def standing() -> str:
            if boxes and not answered:
                return "checking: no answer yet; an image may have to be built first"
            return f"checking: {len(answered)} checks answered, {len(ended)} of {len(tasks)} tasks done"

        with counted(console, "checking", len(tasks)) as done:

            def heard(report: CheckReport) -> None:
                done(report.slug)
                ended.append(report)
                if not console.is_terminal and len(tasks) > 1:
                    console.print(f"{len(ended)} of {len(tasks)}: {summary_line(report)}", markup=False)

            work = check_tasks(
                tasks,
                provider,
                checks=asked,
                strict=strict,
                fresh=fresh,
                heard=heard,
                heard_check=answered.append,
            )
            return await waited(console, work, standing)
    finally:
        if provider is not None:
            await provider.close()


def _place(task: Task, sources: list[str], drawn: Path) -> str:
    """What to give to ``envsdk check`` to get this task again."""
    return " ".join(sources) if task.root.is_relative_to(drawn) else str(task.root)


def _write(reports: list[CheckReport], junit: Path | None, html: Path | None) -> None:
    if junit is not None:
        from envsdk.checks.junit import junit as document

        write_whole(junit, document(reports).decode())
    if html is not None:
        from envsdk.checks.page import page

        write_whole(html, page(reports))


def _closing(reports: list[CheckReport], rejected: tuple[Rejected, ...]) -> str:
    from envsdk.checks.render import standing

    told = [standing(report.verdict, report.checks)[0] for report in reports]
    counts = {name: told.count(name) for name in ("pass", "fail", "error", "incomplete")}
    said = [f"{count} {word}" for word, count in counts.items() if count or word in {"pass", "fail"}]
    return ", ".join(said + ([f"{len(rejected)} invalid"] if rejected else []))


def _envelope(reports: list[CheckReport], loaded: LoadResult) -> dict[str, Any]:
    errors: list[EnvsdkError] = [FaultyError(item.why, code=item.code, where=item.path) for item in loaded.rejected]
    for report in reports:
        for result in report.checks:
            if result.outcome in {"fail", "error"}:
                kind = FaultyError if result.outcome == "fail" else EnvsdkError
                code = "check_failed" if result.outcome == "fail" else "check_undecided"
                errors.append(kind(result.why, code=code, hint=result.fix, where=f"{report.slug}[{result.check}]"))
    tasks = [report.model_dump(mode="json") for report in reports]
    return failure(*errors, tasks=tasks) if errors else success(tasks=tasks)

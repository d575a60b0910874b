"""``envsdk score``: run a changed verifier over stored episodes, without a model, and show the verdicts that change."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envsdk.cli.envelope import UNDECIDED, failure, success
from envsdk.cli.options import JsonFlag, emit
from envsdk.cli.run import states_folder

if TYPE_CHECKING:
    from envsdk.errors import EnvsdkError
    from envsdk.spec.model import Task
    from envsdk.verifying.rescore import Rescored


def score(
    episodes: Annotated[Path, typer.Argument(metavar="EPISODES.jsonl", help="Episodes of envsdk run --out.")],
    *,
    verifier: Annotated[Path, typer.Option(help="The task directory with the changed verifier.")],
    states: Annotated[Path | None, typer.Option(help="The folder of end states; else EPISODES.jsonl.states.")] = None,
    sandbox: Annotated[str | None, typer.Option(help="docker or bubblewrap; else the first that works.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Score stored episodes of a task again. Episodes of other tasks are left out and counted; none is changed.

    Example: envsdk score episodes.jsonl --verifier my-task-with-a-fixed-verifier
    """
    from envsdk.files.jsonl import read_rows
    from envsdk.spec.load import load_task

    task = load_task(verifier)
    rows = read_rows(episodes).rows
    results, errors = asyncio.run(_score(task, rows, states or states_folder(episodes), sandbox))
    changed = [result.change for result in results if result.change]
    listed = [result.as_json() for result in results]
    others = len(rows) - len(results) - len(errors)
    text = "\n".join([*(str(one["diff"]) for one in changed), _summary(results, errors, others)])
    result = {"episodes": listed, "changed": changed, "other_tasks": others}
    emit(failure(*errors, **result) if errors else success(**result), as_json=as_json, text=text)
    if errors:
        raise typer.Exit(UNDECIDED)


async def _score(
    task: Task, rows: list[dict[str, Any]], states: Path, sandbox: str | None
) -> tuple[list[Rescored], list[EnvsdkError]]:
    from envsdk.errors import StoreError
    from envsdk.sandboxes import open_provider
    from envsdk.verifying.rescore import rescore

    provider = open_provider(sandbox) if task.spec.verifier.kind == "script" else None
    results: list[Rescored] = []
    errors: list[EnvsdkError] = []
    try:
        for row in rows:
            if row.get("task_digest") != task.digests.task:
                continue
            try:
                results.append(await rescore(task, row, states, provider))
            except StoreError as error:
                error.where = str(row.get("episode_id", ""))
                errors.append(error)
                continue
            print(f"{row.get('episode_id', '')}: {results[-1].verdict.status}", file=sys.stderr)
    finally:
        if provider is not None:
            await provider.close()
    return results, errors


def _summary(results: list[Rescored], errors: list[EnvsdkError], others: int) -> str:
    rates = []
    for name in ("before", "after"):
        outcomes = [getattr(result, name) for result in results]
        graded = [outcome for outcome in outcomes if outcome["graded"]]
        passed = sum(outcome["outcome_class"] == "model_success" for outcome in graded)
        rates.append(f"{passed} of {len(graded)} passed")
    changed = sum(result.change is not None for result in results)
    left = f"; {others} episodes of other tasks" if others else ""
    lost = f"; {len(errors)} without an end state" if errors else ""
    return f"{changed} of {len(results)} verdicts changed: {rates[0]} before, {rates[1]} after{left}{lost}"

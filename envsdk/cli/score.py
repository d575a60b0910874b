"""``envsdk score``: run a changed verifier over stored episodes, without a model, and show the verdicts that change."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envsdk.cli.envelope import UNDECIDED, failure, success
from envsdk.cli.options import JsonFlag, SandboxOption, emit
from envsdk.cli.run import states_folder
from envsdk.files.scratch import scratch

if TYPE_CHECKING:
    from envsdk.errors import EnvsdkError
    from envsdk.spec.model import Task
    from envsdk.verifying.difficulty import Measured
    from envsdk.verifying.rescore import Rescored


def score(
    episodes: Annotated[Path, typer.Argument(metavar="EPISODES.jsonl", help="Episodes of envsdk run --out.")],
    *,
    verifier: Annotated[str, typer.Option(help="The task with the changed verifier: a directory, or FILE.py::NAME.")],
    states: Annotated[Path | None, typer.Option(help="The folder of end states; else EPISODES.jsonl.states.")] = None,
    sandbox: SandboxOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Score stored episodes of a task again: verdicts that change, and what that does to its difficulty by policy.

    Episodes of other tasks are left out and counted; exit 2 where all are. No stored episode is changed.

    Example: envsdk score episodes.jsonl --verifier my-task-with-a-fixed-verifier
    """
    from envsdk.authoring.find import one_task

    with scratch("score") as folder:
        task = one_task(verifier, folder)
        rows = _rows_of(task, episodes)
        kept = _kept(states or states_folder(episodes))
        results, errors = asyncio.run(_score(task, rows, kept, sandbox))
    changed = [result.change for result in results if result.change]
    listed = [result.as_json() for result in results]
    others = len(rows) - len(results) - len(errors)
    moved = _difficulty(results)
    lines = [f"{policy}: {before} -> {after}" for policy, before, after in moved]
    lines += ["difficulty is the log odds of failing: 0 where half pass, below it where more do"] if moved else []
    text = "\n".join([*(str(one["diff"]) for one in changed), *lines, _summary(results, errors, others)])
    result = {
        "episodes": listed,
        "changed": changed,
        "difficulty": [
            {"policy": policy, "before": before.as_json(), "after": after.as_json()} for policy, before, after in moved
        ],
        "verifier_digest": task.digests.verifier,
        "other_tasks": others,
    }
    emit(failure(*errors, **result) if errors else success(**result), as_json=as_json, text=text)
    if errors:
        raise typer.Exit(UNDECIDED)


def _rows_of(task: Task, episodes: Path) -> list[dict[str, Any]]:
    """Every row of the file.

    Raises:
        UsageError: there is no such file (``no_episodes``), or none in it is of ``task`` (``other_task``).
    """
    from envsdk.errors import UsageError
    from envsdk.files.jsonl import read_rows

    if not episodes.is_file():
        hint = "envsdk run TASK --policy POLICY --out FILE.jsonl writes one"
        raise UsageError("there is no file of episodes", code="no_episodes", where=str(episodes), hint=hint)
    rows = read_rows(episodes).rows
    if not any(row.get("task_digest") == task.digests.task for row in rows):
        slugs = ", ".join(sorted({str(row.get("slug", "")) for row in rows})[:5])
        raise UsageError(
            f"none of {len(rows)} episodes is of {task.slug} as it stands (task {task.digests.task[:12]})",
            code="other_task",
            where=str(episodes),
            hint=f"they are of: {slugs or 'no task'}; with another instruction or environment it is another task",
        )
    return rows


def _kept(states: Path) -> Path:
    from envsdk.errors import UsageError

    if not states.is_dir():
        hint = "run with --out keeps it as EPISODES.jsonl.states; --states says where it lies now"
        raise UsageError("there is no folder of end states", code="no_states", where=str(states), hint=hint)
    return states


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


def _difficulty(results: list[Rescored]) -> list[tuple[str, Measured, Measured]]:
    """For each policy, what its episodes say of the task's difficulty before and after."""
    from envsdk.verifying.difficulty import measured

    policies = dict.fromkeys(result.policy for result in results)
    by_policy = {policy: [result for result in results if result.policy == policy] for policy in policies}
    return [
        (policy, measured(one.before for one in theirs), measured(one.after for one in theirs))
        for policy, theirs in by_policy.items()
    ]


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

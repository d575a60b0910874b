"""``envsdk init``: a task that checks green at once, to be changed into another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsdk.cli.envelope import success
from envsdk.cli.options import JsonFlag, emit


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The new task's folder; its name is the slug.")],
    *,
    kind: Annotated[str, typer.Option(help="What its verifier judges: text, state or script.")] = "text",
    as_json: JsonFlag = False,
) -> None:
    """Write a small task with its verifier, oracle and wrong answers.

    Examples: envsdk init my-task; envsdk init my-box --kind script
    """
    from envsdk.authoring.scaffold import scaffold

    task = scaffold(directory, kind=kind)
    text = f"{task.root}: a {task.spec.verifier.kind} task. Next: envsdk check {task.root}"
    emit(
        success(
            path=str(task.root),
            slug=task.slug,
            task_digest=task.digests.task,
            verifier_digest=task.digests.verifier,
        ),
        as_json=as_json,
        text=text,
    )

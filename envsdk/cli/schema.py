"""``envsdk schema``: the JSON Schema of a task, for editors and other programs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from envsdk.cli.envelope import render, success
from envsdk.cli.options import JsonFlag


def schema(
    *,
    spec: Annotated[bool, typer.Option("--spec", help="Of the parsed specification, not of task.toml.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print the JSON Schema of task.toml.

    Examples: envsdk schema > task.schema.json; envsdk schema --spec
    """
    from envsdk.spec.schema import json_schema

    found = json_schema("task" if spec else "task.toml")
    print(render(success(schema=found)) if as_json else json.dumps(found, indent=2))

"""JSON Schema (draft 2020-12) of what a task is: the parsed specification, and ``task.toml`` as it is written."""

from __future__ import annotations

from typing import Any, Literal

from envsdk.spec.model import TaskSpec
from envsdk.spec.tables import TaskToml

SchemaName = Literal["task", "task.toml"]


def json_schema(name: SchemaName = "task.toml") -> dict[str, Any]:
    """The schema of ``task.toml`` (for editors and other programs), or of the specification that the API returns."""
    model = TaskToml if name == "task.toml" else TaskSpec
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}

"""Graders: a candidate answer and the truth in, a verdict out.

No grader evaluates the candidate as code, matches by substring, prefix or suffix, or turns exact values into doubles
before comparing. Each is a plain function; `GRADERS` names those of a text for tasks that choose one by name. `command`
and `file` judge what an agent left. They run wherever a verifier does: a task brings the graders that it was written
with among its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from envsdk.graders.boxed import boxed
from envsdk.graders.choice import choice
from envsdk.graders.code_output import code_output
from envsdk.graders.command import command
from envsdk.graders.exact import exact
from envsdk.graders.file import file
from envsdk.graders.items import list_equal, set_equal
from envsdk.graders.json_equal import json_equal
from envsdk.graders.json_schema import json_schema
from envsdk.graders.numeric import numeric
from envsdk.graders.sql import sql
from envsdk.graders.verdict import Verdict

GRADERS: Mapping[str, Callable[..., Verdict]] = MappingProxyType(
    {
        "boxed": boxed,
        "choice": choice,
        "code_output": code_output,
        "exact": exact,
        "json_equal": json_equal,
        "json_schema": json_schema,
        "list_equal": list_equal,
        "numeric": numeric,
        "set_equal": set_equal,
        "sql": sql,
    }
)

__all__ = [
    "GRADERS",
    "Verdict",
    "boxed",
    "choice",
    "code_output",
    "command",
    "exact",
    "file",
    "json_equal",
    "json_schema",
    "list_equal",
    "numeric",
    "set_equal",
    "sql",
]

"""The JSON Schema says what the loader accepts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

from envsdk.spec.schema import json_schema

CASES = Path(__file__).parents[3] / "conformance" / "cases" / "verifier_defects"


@pytest.mark.parametrize("name", ["task.toml", "task"])
def test_it_is_a_valid_schema(name) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(name))


def test_it_accepts_a_harbor_task() -> None:
    table = tomllib.loads((CASES / "good-plain" / "task.toml").read_text())
    jsonschema.validate(table, json_schema())


def test_it_refuses_a_wrong_value() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"verifier": {"environment_mode": "seperate"}}, json_schema())

"""JSON against a schema: exact numbers, nothing fetched, and a schema that is none is the task's fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import VerifierError
from envsdk.graders import json_schema

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ('{"name": "Ada", "age": 36}', "correct"),
        ('{"name": "Ada"}', "correct"),
        ('{"age": 36.0, "name": "Ada"}', "correct"),
        ('```json\n{"name": "Ada"}\n```', "correct"),
        ('{"name": ""}', "incorrect"),
        ('{"name": "Ada", "age": "36"}', "incorrect"),
        ('{"name": "Ada", "age": true}', "incorrect"),
        ('{"name": "Ada", "age": 36.5}', "incorrect"),
        ('{"name": "Ada", "extra": 1}', "incorrect"),
        ('{"name": "Ada", "name": "Eve"}', "no_answer"),
        ('Here it is: {"name": "Ada"}', "no_answer"),
        ("{'name': 'Ada'}", "no_answer"),
        ('{"name": "Ada"', "no_answer"),
        ('{"name": "Ada", "age": NaN}', "no_answer"),
        ("", "no_answer"),
        ("[" * 100_000 + "]" * 100_000, "no_answer"),
    ],
)
def test_a_record(candidate: str, verdict: str) -> None:
    assert json_schema(candidate, PERSON) == verdict
    assert json_schema(candidate, json.dumps(PERSON)) == verdict


@pytest.mark.parametrize(
    ("candidate", "schema", "verdict"),
    [
        ("0.3", {"multipleOf": 0.1}, "correct"),
        ("0.35", {"multipleOf": 0.1}, "incorrect"),
        ("1e999999999", {"multipleOf": 3}, "incorrect"),
        ("3e999999999", {"multipleOf": 3}, "correct"),
        ("25", {"multipleOf": 50}, "incorrect"),
        ("0", {"multipleOf": 50}, "correct"),
        ("9007199254740993", {"const": 9007199254740992}, "incorrect"),
        ("9007199254740993", {"maximum": 9007199254740992}, "incorrect"),
        ("0.1", {"enum": [0.10]}, "correct"),
        ("1e400", {"type": "number", "minimum": 1}, "correct"),
        ("1e400", {"type": "integer"}, "correct"),
        ("[1, 1.0]", {"uniqueItems": True}, "incorrect"),
        ("7" * 5000, {"type": "integer"}, "correct"),
        ("true", {"type": "number"}, "incorrect"),
        ("1e99999999999999999999", {}, "no_answer"),
    ],
)
def test_numbers_are_exact(candidate: str, schema: dict[str, Any], verdict: str) -> None:
    assert json_schema(candidate, schema) == verdict


def test_a_schema_may_refer_to_itself() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}}, "additionalProperties": False}
    assert json_schema('{"left": {"left": {}}}', tree) == "correct"
    assert json_schema('{"left": {"right": {}}}', tree) == "incorrect"
    assert json_schema("[" * 900 + "]" * 900, {"items": {"$ref": "#"}}) == "no_answer"


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"]
)
def test_an_older_draft_is_its_own(draft: str) -> None:
    assert json_schema("[1]", {"$schema": draft, "items": [{"type": "string"}]}) == "incorrect"


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "inteegr"}',
        '{"$ref": "http://127.0.0.1:9/x"}',
        '{"$ref": "#/nowhere"}',
        '{"a": 1, "a": 2}',
        "[",
        "3",
        '""',
    ],
)
def test_a_schema_that_is_none_is_the_tasks_fault(schema: str) -> None:
    with pytest.raises(VerifierError) as caught:
        json_schema("1", schema)
    assert caught.value.code == "unreadable_truth"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_value_is_valid_under_its_own_constant_and_no_other(value: Any) -> None:
    assert json_schema(json.dumps(value), {"const": value}) == "correct"
    assert json_schema(json.dumps(value), {"not": {"const": value}}) == "incorrect"


@given(st.text())
def test_any_text_has_a_verdict(text: str) -> None:
    assert json_schema(text, True) in {"correct", "no_answer"}

"""Graders of whole texts: exact, json_equal, list_equal, set_equal, code_output."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import VerifierError
from envsdk.graders import GRADERS, code_output, exact, json_equal, list_equal, set_equal
from envsdk.graders.fence import without_fence

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.lists(
    st.text(alphabet="abc xyz", min_size=1, max_size=5).map(str.strip).filter(bool), min_size=1, max_size=5
)


@given(st.text(alphabet="aB \t\n\v\f\r", max_size=12))
def test_exact_ignores_outer_white_space_only(text: str) -> None:
    bare = text.strip(" \t\n\v\f\r")
    assert exact(f" \n{text}\f", bare or "x") == ("correct" if bare else "no_answer")


def test_exact_takes_no_other_space_for_white_space() -> None:
    assert exact("\u00a0Paris", "Paris") == "incorrect"
    assert exact("New\u2003York", "New York", collapse_whitespace=True) == "incorrect"
    assert exact("New\v\fYork", "New York", collapse_whitespace=True) == "correct"


def test_exact_does_not_normalise_characters() -> None:
    assert exact("cafe\u0301", "caf\u00e9", ignore_case=True) == "incorrect"


@given(JSON)
def test_json_equals_itself_in_any_dress(value: Any) -> None:
    text = json.dumps(value)
    assert json_equal(f"```json\n{json.dumps(value, indent=2)}\n```", text) == "correct"
    assert json_equal(f" {text}\n", json.dumps(value, ensure_ascii=False)) == "correct"


@given(JSON, JSON)
def test_json_is_equal_only_where_types_and_values_are(one: Any, other: Any) -> None:
    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [typed(item) for item in value]
        return (
            ("number", value)
            if isinstance(value, int | float) and not isinstance(value, bool)
            else (type(value), value)
        )

    assert json_equal(json.dumps(one), json.dumps(other)) == ("correct" if typed(one) == typed(other) else "incorrect")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1", "1.0"),
        ("1e0", "1"),
        ("-0", "0.0"),
        ("1E400", "10e399"),
        ('"\\u00e9"', '"\u00e9"'),
        ('"\\ud83d\\ude00"', '"\U0001f600"'),
    ],
)
def test_json_spellings_of_one_value(left: str, right: str) -> None:
    assert json_equal(left, right) == "correct"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nan",
        "NaN",
        "[1,]",
        "{'a': 1}",
        "{} {}",
        "01",
        "+1",
        ".5",
        "1.",
        '"\t"',
        '{"a": 1, "\\u0061": 1}',
        '[{"a": 1, "a": 1}]',
        "[" * 50000,
        "```\n1\n``` done",
        "`1`",
        "\ufeff1",
        "// c\n1",
        "Infinity",
    ],
    ids=lambda text: text[:14],
)
def test_what_is_not_one_strict_json_text_is_no_answer(text: str) -> None:
    assert json_equal(text, "1") == "no_answer"


@given(WORDS)
def test_a_list_is_the_same_by_lines_commas_or_array(items: list[str]) -> None:
    forms = ["\n".join(items) + "\n\n", ",".join(items), json.dumps(items), "```\n" + "\n".join(items) + "\n```"]
    for form in forms:
        assert list_equal(form, json.dumps(items)) == "correct"
        assert set_equal(form, json.dumps(items[::-1])) == "correct"
    assert list_equal(forms[0], json.dumps([*items, "more"])) == "incorrect"


@pytest.mark.parametrize("grader", [list_equal, set_equal])
@pytest.mark.parametrize("text", ["", " , ,,\n", "[1, 2", "[a, b]", "[[1]]", '[{"a": 1}]', "[1] and 2", "[NaN]"])
def test_a_list_that_cannot_be_read_is_no_answer(grader: Any, text: str) -> None:
    assert grader(text, "1, 2") == "no_answer"


def test_items_of_an_array_are_compared_as_text() -> None:
    assert list_equal("[1, true, null, 1.50]", "1,true,null,1.50") == "correct"
    assert list_equal("[1.0]", "1") == "incorrect"
    assert list_equal('["x, y"]', "x, y") == "incorrect"


def test_a_list_with_lines_is_not_cut_at_commas() -> None:
    assert list_equal("a, b\nc", '["a, b", "c"]') == "correct"


def test_an_empty_array_is_a_list() -> None:
    assert set_equal("[]", "[]") == "correct"
    assert set_equal("[]", "a") == "incorrect"


@given(
    st.lists(st.text(alphabet="ab ", max_size=4).map(str.rstrip), max_size=4), st.sampled_from(["\n", "\r\n", " \t\n"])
)
def test_output_lines_ignore_what_trails_them(lines: list[str], end: str) -> None:
    assert code_output(end.join([*lines, "", ""]), "\n".join(lines)) == "correct"


@pytest.mark.parametrize("text", ["1\r2\n", "1 2", "\n1\n2\n", "1\n2\n\n3", "1\n2\x0b", "2\n1\n", "", "1\n\u00a02"])
def test_output_that_differs_in_anything_else(text: str) -> None:
    assert code_output(text, "1\n2\n") == "incorrect"


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```\na\n```", "a"),
        ("~~~py\na\n~~~\n", "a"),
        ("````\n```\n````", "```"),
        ("```\n```", ""),
        ("```a```", "```a```"),
        ("```\na\n``` x", "```\na\n``` x"),
        ("```\na\n~~~", "```\na\n~~~"),
        ("a", "a"),
    ],
)
def test_one_fence_around_the_whole_is_dropped(text: str, inside: str) -> None:
    assert without_fence(text) == inside


@pytest.mark.parametrize(
    ("grader", "truth"),
    [("exact", " "), ("json_equal", "{"), ("json_equal", '{"a":1,"a":1}'), ("list_equal", ""), ("set_equal", "[1")],
)
def test_an_unreadable_truth_is_an_error_of_the_task(grader: str, truth: str) -> None:
    with pytest.raises(VerifierError) as raised:
        GRADERS[grader]("x", truth)
    assert raised.value.code == "unreadable_truth"


@given(st.text(max_size=40))
def test_no_grader_raises_for_any_candidate(text: str) -> None:
    truths = {"choice": "A", "json_schema": "{}", "sql": "SELECT 1"}
    options = {"sql": {"database": ""}}
    for name, grader in GRADERS.items():
        assert grader(text, truths.get(name, "1"), **options.get(name, {})) in {"correct", "incorrect", "no_answer"}

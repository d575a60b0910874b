"""Values that a task takes from the machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import UsageError
from envsdk.spec.environ import required_names, resolve_env


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("plain", "plain"),
        ("${A}", "1"),
        ("x${A}y${B:-2}", "x1y2"),
        ("${E:-d}", "d"),
        ("${C:-}", ""),
        ("$A", "$A"),
        ("${A:-9}", "1"),
    ],
)
def test_references_are_replaced(value: str, resolved: str) -> None:
    assert resolve_env({"K": value}, {"A": "1", "E": ""}) == {"K": resolved}


def test_every_missing_name_is_reported() -> None:
    with pytest.raises(UsageError, match="X, Y") as caught:
        resolve_env({"a": "${Y}${X}", "b": "${X}", "c": "${Z:-z}"}, {})
    assert caught.value.code == "env_missing"


@given(st.dictionaries(st.text(max_size=5), st.text(st.characters(exclude_characters="$"), max_size=9)))
def test_what_has_no_reference_stays(env: dict[str, str]) -> None:
    assert resolve_env(env, {}) == env


def test_names_with_defaults_are_not_required() -> None:
    assert required_names("${A} ${B:-x} ${C}") == ["A", "C"]

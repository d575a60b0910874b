"""What `from envsdk import ...` offers: every promised name is there, and nothing else pretends to be."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import envsdk

SOURCE = ast.parse(Path(envsdk.__file__).read_text(encoding="utf-8"))


def names_for_type_checkers() -> set[str]:
    block = next(node for node in SOURCE.body if isinstance(node, ast.If))
    return {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


@pytest.mark.parametrize("name", envsdk.__all__)
def test_a_promised_name_is_there_and_says_what_it_is(name: str) -> None:
    thing = getattr(envsdk, name)
    assert inspect.getdoc(thing)
    assert thing.__module__.startswith("envsdk.")


def test_type_checkers_and_the_interpreter_are_told_the_same_names() -> None:
    assert names_for_type_checkers() == set(envsdk.__all__)


def test_a_star_import_gives_the_promised_names_alone() -> None:
    found: dict[str, object] = {}
    exec("from envsdk import *", found)
    assert set(found) - {"__builtins__"} == set(envsdk.__all__)


def test_a_name_that_is_none_is_an_attribute_error_like_any_modules() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'taks'"):
        envsdk.taks  # noqa: B018


@pytest.mark.parametrize(
    "package", ["envsdk.authoring", "envsdk.graders", "envsdk.outcome", "envsdk.sandboxes", "registry.query"]
)
def test_a_packages_door_holds_what_it_promises(package: str) -> None:
    door = importlib.import_module(package)
    assert [name for name in door.__all__ if not hasattr(door, name)] == []
    assert len(set(door.__all__)) == len(door.__all__)

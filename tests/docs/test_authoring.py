"""The page of authoring names every keyword there is, and the defaults that it shows are the ones that hold."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import envsdk
from envsdk import AgentSpec, Budget, ContainerSpec, Draw, ServiceSpec

PAGE = Path(__file__).parents[2] / "docs/reference/authoring.md"


def _section(title: str) -> dict[str, str]:
    """Keyword -> default as shown, of the table under the heading that begins with ``title``."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## `{title}", 1)[1].split("\n## ", 1)[0]
    found: dict[str, str] = {}
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) < 4 or not (names := re.findall(r"`(\w+)`", cells[1])):
            continue
        values = re.findall(r"`([^`]*)`", cells[2])
        found |= dict(zip(names, values if len(values) == len(names) else [""] * len(names), strict=True))
    return found


@pytest.mark.parametrize("record", [AgentSpec, ContainerSpec, ServiceSpec, Budget])
def test_a_record_stands_with_every_keyword_and_the_default_it_has(record: type) -> None:
    shown = _section(f"{record.__name__}(")
    fields = record.model_fields
    assert set(shown) == set(fields)
    for name, default in shown.items():
        if default:
            assert default == repr(fields[name].get_default(call_default_factory=True)), name


def test_a_draw_stands_with_every_keyword() -> None:
    assert set(_section("Draw(")) == {field.name for field in dataclasses.fields(Draw)}


def test_the_decorators_stand_with_every_keyword() -> None:
    declared = {*inspect.signature(envsdk.task).parameters, *inspect.signature(envsdk.family).parameters}
    assert set(_section("@task(")) == declared
    keywords = {name: one for name, one in inspect.signature(envsdk.verifier).parameters.items() if name != "function"}
    shown = _section("@verifier(")
    assert set(shown) == set(keywords)
    assert all(shown[name] == repr(one.default) for name, one in keywords.items())

"""Records: immutable, and strict about their fields, all of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError

from envsdk.episode.record import PolicyId
from envsdk.frozen import Frozen


def records(kind: type[BaseModel] = Frozen) -> Iterator[type[BaseModel]]:
    for child in kind.__subclasses__():
        yield child
        yield from records(child)


def all_records() -> list[type[BaseModel]]:
    for package in ("spec", "episode", "outcome", "checks", "sandboxes"):
        folder = importlib.import_module(f"envsdk.{package}")
        for module in pkgutil.iter_modules(folder.__path__, f"envsdk.{package}."):
            importlib.import_module(module.name)
    return sorted(set(records()), key=lambda kind: (kind.__module__, kind.__name__))


@pytest.mark.parametrize("kind", all_records(), ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_no_record_loosens_the_rules(kind: type[BaseModel]) -> None:
    assert kind.model_config.get("frozen") is True
    assert kind.model_config.get("extra") == "forbid"


def test_a_field_cannot_be_set_again() -> None:
    record = PolicyId(model="m")
    with pytest.raises(ValidationError):
        record.model = "other"
    assert record.model == "m"


def test_a_field_that_nobody_declared_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="modle"):
        PolicyId(modle="m")


def test_equal_fields_make_equal_records() -> None:
    assert PolicyId(model="m") == PolicyId(model="m") != PolicyId(model="n")
    assert PolicyId.model_validate_json(PolicyId(model="m").model_dump_json()) == PolicyId(model="m")

"""Judge of ``end_reasons``: facts in, class, cause, reward and consequences out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from envsdk.conformance.fields import known_fields
from envsdk.conformance.run import Case, known
from envsdk.outcome import explain
from envsdk.outcome.facts import Facts

FOLLOWS = ("graded", "in_gradient", "in_baseline", "redispatch", "counts_in_eval")


def judge_end_reason(case: Case) -> None:
    """Raise AssertionError where the outcome differs from the expected one in any field that the case states.

    A case with a fact that nobody observes, or a field that no outcome has, is skipped.
    """
    known_fields(case, {"facts"}, {"class", "cause", "reward", "rewards", *FOLLOWS})
    _known_facts(Facts, case.body["input"]["facts"])
    expected = case.body["expected"]
    found = explain(case.body["input"]["facts"])
    got = {
        "class": found.outcome.outcome_class,
        "cause": found.outcome.cause,
        "reward": found.outcome.reward,
        "rewards": found.outcome.rewards,
        **{name: getattr(found.outcome, name) for name in FOLLOWS},
    }
    wrong = {name: (got[name], value) for name, value in expected.items() if got[name] != value}
    rows = f"rows {found.end_row!r}, {found.grade_row!r}; signs {found.signs}"
    assert not wrong, f"(got, expected): {wrong}; {rows}"


def _known_facts(kind: type[BaseModel], given: Mapping[str, Any], where: str = "") -> None:
    known("fact", (f"{where}{name}" for name in given), {f"{where}{name}" for name in kind.model_fields})
    for name, value in given.items():
        inner = _record_of(kind.model_fields[name].annotation)
        for part in value if isinstance(value, list) else [value]:
            if inner is not None and isinstance(part, Mapping):
                _known_facts(inner, part, f"{where}{name}.")


def _record_of(annotation: Any) -> type[BaseModel] | None:
    """The record that a field holds, itself or in a tuple or beside `None`."""
    parts = (annotation, *get_args(annotation))
    return next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)

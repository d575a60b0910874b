"""The judges of the numeric cases pass what is right, fail what is not, and skip by name what they do not know."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envsdk.conformance.run import Case, SkipCaseError, read_cases
from tests.fakes.wrong_values import wrong
from trainer.conformance import KINDS

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "numeric"
# The first case of each inner kind of each file, so that every branch of every judge is tried.
ONE_OF_EACH = list({(c.kind, c.body["kind"]): c for c in read_cases(CASES) if c.kind in KINDS}.values())
WITH_ANSWERS = [case for case in ONE_OF_EACH if "expect" in case.body]


def named(case: Case) -> str:
    return f"{case.kind}-{case.body['kind']}"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The first leaf under each key of the answer, so that every compared field is hit once."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        if value:
            yield from leaves(value[-1], (*path, len(value) - 1))
    else:
        yield path, value


def changed(case: Case, path: tuple[Any, ...], to: Any) -> Case:
    body = copy.deepcopy(dict(case.body))
    place = body["expect"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return Case(case.kind, case.id, body, case.head, case.path)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=named)
def test_a_right_answer_passes(case: Case) -> None:
    KINDS[case.kind](case)


@pytest.mark.parametrize("case", WITH_ANSWERS, ids=named)
def test_any_wrong_field_of_the_answer_fails(case: Case) -> None:
    for path, value in leaves(case.body["expect"]):
        spoiled = changed(case, path, wrong(value))
        with pytest.raises(AssertionError):
            KINDS[case.kind](spoiled)


def test_an_error_that_is_not_raised_fails() -> None:
    for case in ONE_OF_EACH:
        if "expect_error" in case.body:
            good = next(c for c in ONE_OF_EACH if c.kind == case.kind and "expect" in c.body)
            body = {**good.body, "kind": case.body["kind"], "estimator": "grpo", "expect_error": "ValueError"}
            body.pop("expect")
            with pytest.raises((AssertionError, SkipCaseError)):
                KINDS[case.kind](Case(case.kind, "x", body, case.head, case.path))


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=named)
def test_a_field_or_kind_nobody_knows_is_skipped_by_name(case: Case) -> None:
    other_kind = {"estimator" if "estimator" in case.body else "kind": "surprise"}
    for extra in ({"surprise": 1}, other_kind):
        with pytest.raises(SkipCaseError, match="surprise"):
            KINDS[case.kind](Case(case.kind, case.id, {**case.body, **extra}, case.head, case.path))


@pytest.mark.parametrize("case", [c for c in ONE_OF_EACH if c.body.get("params")], ids=named)
def test_an_option_nobody_knows_is_skipped_by_name(case: Case) -> None:
    body = {**case.body, "params": {**case.body["params"], "surprise": 1}}
    with pytest.raises(SkipCaseError, match="surprise"):
        KINDS[case.kind](Case(case.kind, case.id, body, case.head, case.path))

"""The judges of numeric cases: a field or an expectation that they do not know skips the case, wherever it stands."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envsdk.conformance.run import Case, SkipCaseError, read_cases
from trainer.conformance import KINDS

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "numeric"


def one_of_each() -> Iterator[Case]:
    seen = set()
    for case in read_cases(CASES):
        kind = (case.kind, case.body["kind"])
        if case.kind in KINDS and kind not in seen and "expect" in case.body:
            seen.add(kind)
            yield case


def tables(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where an expectation has named parts; of a list its last entry."""
    if isinstance(value, dict):
        yield path
        for name, part in value.items():
            yield from tables(part, (*path, name))
    elif isinstance(value, list) and value:
        yield from tables(value[-1], (*path, len(value) - 1))


FREE = {("groups",), ("metrics", "histogram")}
"""Tables whose names are the case's own; a name too many is a wrong answer."""
PLACES = [
    pytest.param(case, path, id=f"{case.kind}-{case.body['kind']}-{'.'.join(map(str, path)) or 'top'}")
    for case in one_of_each()
    for path in tables(case.body["expect"])
]


@pytest.mark.parametrize(("case", "path"), PLACES)
def test_an_expectation_that_nobody_knows_never_passes(case: Case, path: tuple[str | int, ...]) -> None:
    body = copy.deepcopy(dict(case.body))
    part = body["expect"]
    for step in path:
        part = part[step]
    part["moonlight"] = 1
    wanted = AssertionError if path in FREE else SkipCaseError
    with pytest.raises(wanted):
        KINDS[case.kind](Case(case.kind, case.id, body, case.head, case.path))


@pytest.mark.parametrize("case", list(one_of_each()), ids=lambda case: f"{case.kind}-{case.body['kind']}")
def test_a_field_that_nobody_knows_skips_the_case_by_name(case: Case) -> None:
    body = {**case.body, "moonlight": 1}
    with pytest.raises(SkipCaseError, match="moonlight"):
        KINDS[case.kind](Case(case.kind, case.id, body, case.head, case.path))

"""The judges of envsdk's own cases: a right answer passes, any wrong one fails, what is not known is skipped by name."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from envsdk.conformance.entries import content_of, name_of
from envsdk.conformance.kinds import KINDS
from envsdk.conformance.run import Case, SkipCaseError, read_cases
from tests.fakes.wrong_values import wrong

CASES = Path(__file__).parents[2] / "conformance" / "cases"


def inner_kind(case: Case) -> str:
    """What a judge branches on: the kind within the file, the grader, or which answer a reward file has."""
    body = case.body
    return str(body.get("kind") or body["input"].get("grader") or sorted(body.get("expected", {})))


def judged_in_process() -> Iterator[Case]:
    """The first case of each inner kind; verifiers' cases need a sandbox and are left to the suite itself."""
    seen = set()
    for case in read_cases(CASES):
        if case.kind in KINDS and case.kind != "verifier_defects" and (case.kind, inner_kind(case)) not in seen:
            seen.add((case.kind, inner_kind(case)))
            yield case


ONE_OF_EACH = list(judged_in_process())


def named(case: Case) -> str:
    return f"{case.kind}-{case.id}"


def answers(case: Case) -> Iterator[str]:
    yield from case.body.get("expected", {})


WRONG_FIELDS = [
    pytest.param(case, field, id=f"{named(case)}-{field}") for case in ONE_OF_EACH for field in answers(case)
]


def with_answer(case: Case, **fields: Any) -> Case:
    body = copy.deepcopy(dict(case.body))
    body["expected"] = {**body.get("expected", {}), **fields}
    return Case(case.kind, case.id, body, case.head, case.path)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=named)
def test_a_right_answer_passes(case: Case) -> None:
    before = copy.deepcopy(dict(case.body))
    assert KINDS[case.kind](case) is None
    assert case.body == before, "a judge changed its case"


@pytest.mark.parametrize(("case", "field"), WRONG_FIELDS)
def test_any_wrong_field_of_the_answer_fails(case: Case, field: str) -> None:
    with pytest.raises(AssertionError):
        KINDS[case.kind](with_answer(case, **{field: wrong(case.body["expected"][field])}))


def test_an_outcome_with_a_field_that_nobody_knows_is_skipped_by_name() -> None:
    case = next(case for case in ONE_OF_EACH if case.kind == "end_reasons")
    with pytest.raises(SkipCaseError, match="blame"):
        KINDS[case.kind](with_answer(case, blame="the model"))


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=named)
@pytest.mark.parametrize("part", ["", "input", "expected"])
def test_a_field_that_nobody_knows_skips_a_case_of_any_kind_by_name(case: Case, part: str) -> None:
    body = copy.deepcopy(dict(case.body))
    (body[part] if part else body)["moonlight"] = 1
    with pytest.raises(SkipCaseError, match="moonlight"):
        KINDS[case.kind](Case(case.kind, case.id, body, case.head, case.path))


@pytest.mark.parametrize(
    "facts",
    [
        {"moonlight": 1},
        {"verifier": {"moonlight": 1}},
        {"clocks": {"held_s": {"moonlight": 1.0}}},
        {"control": [{"state": "same"}, {"moonlight": 1}]},
        {"exception": {"moonlight": "x"}},
    ],
)
def test_a_fact_that_nobody_observes_skips_a_case_by_name(facts: Mapping[str, Any]) -> None:
    case = next(case for case in ONE_OF_EACH if case.kind == "end_reasons")
    body = copy.deepcopy(dict(case.body))
    body["input"]["facts"] |= facts
    with pytest.raises(SkipCaseError, match="moonlight"):
        KINDS[case.kind](Case(case.kind, case.id, body, case.head, case.path))


def test_the_named_rewards_of_an_outcome_are_compared_too() -> None:
    case = next(case for case in ONE_OF_EACH if case.kind == "end_reasons")
    with pytest.raises(AssertionError, match="rewards"):
        KINDS[case.kind](with_answer(case, rewards={"speed": 1.0}))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("graders", {"input": {"grader": "by_feeling", "candidate": "a", "truth": "a"}, "expected": {}}),
        (
            "graders",
            {"input": {"grader": "exact", "options": {"mood": 1}, "candidate": "a", "truth": "a"}, "expected": {}},
        ),
        ("reward_files", {"input": {"written": {}, "moon": "full"}, "expected": {"error": "missing_reward"}}),
        ("reward_files", {"input": {"written": {"reward.txt": {"smoke": 1}}}, "expected": {"error": "missing_reward"}}),
        ("text_and_files", {"kind": "song", "input": {}, "expected": {}}),
        ("text_and_files", {"kind": "digest", "input": {"tree": [{"path": "a", "colour": "red"}]}, "expected": {}}),
        (
            "text_and_files",
            {"kind": "archive", "input": {"format": "rar", "members": []}, "expected": {"files": []}},
        ),
        (
            "text_and_files",
            {"kind": "archive", "input": {"format": "tar", "members": [{"path": "a", "type": "door"}]}, "expected": {}},
        ),
    ],
)
def test_what_a_judge_does_not_know_is_skipped_and_never_passed(kind: str, body: Mapping[str, Any]) -> None:
    with pytest.raises(SkipCaseError):
        KINDS[kind](Case(kind, "made up", body, {}, Path("nowhere.yaml")))


def test_entries_are_named_and_filled_as_bytes() -> None:
    assert name_of({"path": "é"}) == "é".encode()
    assert name_of({"path_hex": "ff00", "path": "ignored"}) == b"\xff\x00"
    assert content_of({"text": "é"}) == "é".encode()
    assert content_of({"hex": "ff"}) == b"\xff"
    assert content_of({"fill": {"unit": "ab", "times": 3}}) == b"ababab"
    assert content_of({}) == b""

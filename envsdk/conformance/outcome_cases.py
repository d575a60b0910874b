"""Judge of ``end_reasons``: facts in, class, cause, reward and consequences out."""

from __future__ import annotations

from envsdk.conformance.run import Case, SkipCaseError
from envsdk.outcome import explain

FOLLOWS = ("graded", "in_gradient", "in_baseline", "redispatch", "counts_in_eval")


def judge_end_reason(case: Case) -> None:
    """Raise AssertionError where the outcome differs from the expected one in any field that the case states.

    A case with a field that no outcome has is skipped.
    """
    expected = case.body["expected"]
    found = explain(case.body["input"]["facts"])
    got = {
        "class": found.outcome.outcome_class,
        "cause": found.outcome.cause,
        "reward": found.outcome.reward,
        "rewards": found.outcome.rewards,
        **{name: getattr(found.outcome, name) for name in FOLLOWS},
    }
    if unknown := expected.keys() - got.keys():
        raise SkipCaseError(f"unknown field of an outcome: {', '.join(sorted(unknown))}")
    wrong = {name: (got[name], value) for name, value in expected.items() if got[name] != value}
    rows = f"rows {found.end_row!r}, {found.grade_row!r}; signs {found.signs}"
    assert not wrong, f"(got, expected): {wrong}; {rows}"

"""The outcome table as data."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from envsdk.outcome import explain
from envsdk.outcome.signs import SIGNS
from envsdk.outcome.table import Table, outcome_table


def test_every_cause_is_reached_by_some_row() -> None:
    table = outcome_table()
    reached = {rule.cause for rule in (*table.ends, *table.grades)} | {"tokens_lost", "unclassified"}
    assert set(table.causes) <= reached


def test_every_sign_is_asked_by_some_row() -> None:
    table = outcome_table()
    asked = {name for rule in (*table.ends, *table.grades) for name in (*rule.signs, *rule.unless)}
    assert set(SIGNS) == asked


def test_row_names_are_unique_so_that_an_explanation_names_one() -> None:
    for rows in (outcome_table().ends, outcome_table().grades):
        names = [row.name for row in rows]
        assert len(names) == len(set(names))


def test_every_cause_says_what_to_do() -> None:
    for cause in outcome_table().causes.values():
        assert cause.sentence.endswith(".")
        assert cause.action.endswith(".")


def test_a_row_with_an_unknown_sign_is_refused() -> None:
    content = outcome_table().model_dump(by_alias=True)
    content["ends"] = [{"name": "x", "if": ["no_such_sign"], "cause": "finished"}]
    with pytest.raises(ValidationError, match="no_such_sign"):
        Table.model_validate(content)


def test_another_table_can_be_applied_to_the_same_facts() -> None:
    content = outcome_table().model_dump(by_alias=True)
    content["ends"] = [{"name": "all", "cause": "cancelled"}]
    found = explain({"phase": "verify", "ended_by": "final_answer"}, Table.model_validate(content))
    assert (found.outcome.cause, found.end_row) == ("cancelled", "all")


FLAGS = ("graded", "in_gradient", "in_baseline", "redispatch", "counts_in_eval")
PASSED = {
    "phase": "verify",
    "ended_by": "final_answer",
    "verifier": {"status": "scored", "reward": 1.0},
    "tokens": {"complete": True},
}


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_of_a_cause_stands_in_place_of_its_classs_and_no_other_moves(flag: str) -> None:
    content = outcome_table().model_dump(by_alias=True)
    before = explain(PASSED).outcome
    content["causes"]["finished"][flag] = not getattr(before, flag)
    after = explain(PASSED, Table.model_validate(content)).outcome
    assert {name for name in FLAGS if getattr(after, name) is not getattr(before, name)} == {flag}


def test_what_lost_tokens_cost_is_the_tables_word() -> None:
    lost = {**PASSED, "tokens": {"complete": False}}
    content = outcome_table().model_dump(by_alias=True)
    content["causes"]["tokens_lost"] |= {"in_gradient": None, "in_baseline": None, "counts_in_eval": False}
    ours, other = explain(lost).outcome, explain(lost, Table.model_validate(content)).outcome
    assert [getattr(ours, name) for name in FLAGS] == [True, False, False, False, True]
    assert [getattr(other, name) for name in FLAGS] == [True, True, True, False, False]


@pytest.mark.parametrize("by", ["scheduler", "restart", "someone", None])
def test_only_a_cancel_of_the_scheduler_is_not_dispatched_again(by: str | None) -> None:
    found = explain({"phase": "agent", "ended_by": "cancel", "cancelled_by": by}).outcome
    ours = by in {"scheduler", "restart"}
    assert (found.cause, found.redispatch) == (("given_up", False) if ours else ("cancelled", True))

"""Reading facts: wrongly typed ones were not observed."""

from __future__ import annotations

import math

import pytest

from envsdk.outcome import explain
from envsdk.outcome.facts import Facts, read_facts


def test_a_wrongly_typed_field_is_not_observed_and_the_rest_is_kept() -> None:
    facts = read_facts({"phase": "agent", "ended_by": "cancel", "sandbox": {"alive": "yes", "oom_flag": True}})
    assert facts.sandbox.alive is None
    assert facts.sandbox.oom_flag is True
    assert facts.phase == "agent"


def test_a_wrongly_typed_control_run_loses_the_field_only() -> None:
    facts = read_facts({"control": [{"state": "oracle", "status": "scored", "reward": "1"}, 3]})
    assert [control.state for control in facts.control] == ["oracle"]
    assert facts.control[0].reward is None


def test_unknown_fields_are_ignored_at_every_depth() -> None:
    assert read_facts({"weather": 1, "verifier": {"mood": 2}}) == Facts()


def test_null_means_not_observed() -> None:
    assert read_facts({"kill": None, "phase": None}) == Facts()


def test_integers_are_numbers_and_booleans_are_not() -> None:
    assert read_facts({"verifier": {"reward": 1}}).verifier.reward == 1.0
    assert read_facts({"verifier": {"reward": True}}).verifier.reward is None


@pytest.mark.parametrize("said", [[1, 0], [1, 1], [0, math.inf], [math.nan, 1], [0, math.nan]])
def test_what_is_no_range_is_not_observed(said: list[float]) -> None:
    facts = read_facts({"verifier": {"range": said, "reward": 0.5}})
    assert (facts.low, facts.high, facts.verifier.reward) == (0.0, 1.0, 0.5)


def test_no_range_makes_a_success_of_an_episode_that_left_nothing_to_grade() -> None:
    facts = {"phase": "agent", "ended_by": "token_limit", "verifier": {"status": "not_run", "range": [1, 0]}}
    assert explain(facts).outcome.outcome_class != "model_success"

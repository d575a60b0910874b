"""Old episodes under today's table."""

from __future__ import annotations

from envsdk.outcome import classify
from envsdk.outcome.reclassify import reclassify_row

FACTS = {"phase": "verify", "ended_by": "final_answer", "verifier": {"status": "scored", "reward": 1.0}}


def row(**changed: object) -> dict[str, object]:
    outcome = classify(FACTS).model_dump(mode="json")
    return {"episode_id": "e", "facts": FACTS, "outcome": {**outcome, **changed}}


def test_what_the_table_still_says_is_unchanged() -> None:
    assert reclassify_row(row()) == (row(), None)


def test_a_difference_is_named_before_and_after() -> None:
    new, change = reclassify_row(row(outcome_class="infra_failure", cause="harness_error", reward=None))
    assert new == row()
    assert change == {"episode_id": "e", "before": "infra_failure/harness_error", "after": "model_success/finished 1"}


def test_named_rewards_that_the_facts_do_not_hold_are_kept() -> None:
    kept = row(rewards={"reward": 1.0, "style": 0.5})
    assert reclassify_row(kept) == (kept, None)


def test_an_episode_without_facts_keeps_its_outcome() -> None:
    old = {"episode_id": "e", "facts": {}, "outcome": {"outcome_class": "model_success"}}
    assert reclassify_row(old) == (old, None)

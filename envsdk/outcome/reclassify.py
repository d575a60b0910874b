"""Apply the outcome table to stored facts again: what an old episode would be called today."""

from __future__ import annotations

from typing import Any

from envsdk.outcome.classify import classify

Row = dict[str, Any]


def reclassify_row(row: Row) -> tuple[Row, Row | None]:
    """A stored episode with today's outcome, and what changed: `None` where nothing did.

    A row without facts keeps its outcome, since nothing can be derived.
    """
    if not row.get("facts"):
        return row, None
    outcome = classify(row["facts"])
    if not outcome.rewards and outcome.reward == row["outcome"].get("reward"):
        outcome = outcome.model_copy(update={"rewards": row["outcome"].get("rewards", {})})
    found = outcome.model_dump(mode="json")
    if found == row["outcome"]:
        return row, None
    change = {"episode_id": row.get("episode_id", ""), "before": _short(row["outcome"]), "after": _short(found)}
    return {**row, "outcome": found}, change


def _short(outcome: Row) -> str:
    reward = outcome.get("reward")
    return f"{outcome.get('outcome_class')}/{outcome.get('cause')}" + ("" if reward is None else f" {reward:g}")

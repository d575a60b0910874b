"""From observed facts to class, cause and consequences, by the rows of the outcome table.

Total: any mapping gets an outcome, none raises. Pure: the same facts and table give the same outcome, so that old
episodes can be classified again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envsdk.episode.record import Outcome, OutcomeClass
from envsdk.outcome.facts import Facts, read_facts
from envsdk.outcome.signs import SIGNS
from envsdk.outcome.table import Rule, Table, outcome_table
from envsdk.outcome.verifier_signs import clean_reward


@dataclass(frozen=True, slots=True)
class Explanation:
    """An outcome and why: the rows that decided and the signs that were observed. Rows are empty where none fitted."""

    outcome: Outcome
    end_row: str
    grade_row: str
    signs: tuple[str, ...]


def classify(facts: Mapping[str, Any]) -> Outcome:
    """The outcome of an episode that ended with ``facts`` (see `envsdk.outcome.facts.Facts`)."""
    return explain(facts).outcome


def explain(facts: Mapping[str, Any], table: Table | None = None) -> Explanation:
    """The outcome with the rows of the table that decided it."""
    table = table or outcome_table()
    seen = read_facts(facts)
    signs = frozenset(name for name, holds in SIGNS.items() if holds(seen))
    end = _first(table.ends, seen, signs, end="")
    cause = end.cause if end else "unclassified"
    grade: Rule | None = None
    reward: float | None = None
    if table.causes[cause].side == "model":
        grade = _first(table.grades, seen, signs, end=cause)
        reward = _reward(grade, seen)
        cause = "unclassified" if grade is None else cause if grade.cause == "keep" else grade.cause
    return Explanation(
        outcome=_outcome(table, seen, cause, reward),
        end_row=end.name if end else "",
        grade_row=grade.name if grade else "",
        signs=tuple(sorted(signs)),
    )


def _first(rules: tuple[Rule, ...], facts: Facts, signs: frozenset[str], *, end: str) -> Rule | None:
    return next((rule for rule in rules if _fits(rule, facts, signs, end)), None)


def _fits(rule: Rule, facts: Facts, signs: frozenset[str], end: str) -> bool:
    return (
        (not rule.ended_by or facts.ended_by in rule.ended_by)
        and (not rule.phase or facts.phase in rule.phase)
        and (not rule.end or end in rule.end)
        and signs.issuperset(rule.signs)
        and signs.isdisjoint(rule.unless)
    )


def _reward(grade: Rule | None, facts: Facts) -> float | None:
    if grade is None or grade.reward == "none":
        return None
    if grade.reward == "bottom":
        return facts.low
    return clean_reward(facts) if grade.reward == "clean" else facts.verifier.reward


def _outcome(table: Table, facts: Facts, cause: str, reward: float | None) -> Outcome:
    side = table.causes[cause].side
    outcome_class: OutcomeClass
    if side == "machinery":
        outcome_class, reward = "infra_failure", None
    elif side == "undecided" or reward is None:
        outcome_class, reward = "unknown", None
    else:
        outcome_class = "model_success" if reward >= facts.pass_mark else "model_failure"
    if table.consequence(outcome_class, cause).graded and facts.tokens.complete is False:
        cause = "tokens_lost"
    consequence = table.consequence(outcome_class, cause)
    from_verifier = reward is not None and reward == facts.verifier.reward
    return Outcome(
        outcome_class=outcome_class,
        cause=cause,
        reward=None if reward is None else reward + 0.0,
        rewards=facts.verifier.rewards if from_verifier else {},
        graded=consequence.graded,
        in_gradient=consequence.in_gradient,
        in_baseline=consequence.in_baseline,
        redispatch=consequence.redispatch,
        counts_in_eval=consequence.counts_in_eval,
    )

"""Signs of what a verifier's word is worth: its score, its failures, and what control runs say about them.

A number outside the declared range is no reward, and is told apart from no number. Which of them blames the model is
the outcome table's to say (rule 5: the same verifier scores the pristine and the oracle's state).
"""

from __future__ import annotations

import math

from envsdk.outcome.facts import ControlFact, Facts
from envsdk.outcome.signs import sign


def _usable(reward: float | None, facts: Facts) -> bool:
    return reward is not None and math.isfinite(reward) and facts.low <= reward <= facts.high


@sign
def scored(facts: Facts) -> bool:
    """The verifier gave a reward inside the range."""
    return facts.verifier.status == "scored" and _usable(facts.verifier.reward, facts)


@sign
def score_unusable(facts: Facts) -> bool:
    """The verifier is said to have scored, with a number that is no reward."""
    return facts.verifier.status == "scored" and facts.verifier.reward is not None and not scored(facts)


@sign
def verifier_failed(facts: Facts) -> bool:
    """The verifier crashed, timed out, or left nothing readable."""
    return facts.verifier.status in {"error", "timeout"}


@sign
def verifier_timed_out(facts: Facts) -> bool:
    """The verifier's own budget ran out."""
    return facts.verifier.status == "timeout"


@sign
def verifier_not_run(facts: Facts) -> bool:
    """No verifier ran."""
    return facts.verifier.status in {None, "not_run"}


@sign
def model_wrote_reward(facts: Facts) -> bool:
    """A process of the model's wrote the reward file last."""
    return facts.verifier.reward_writer in {"agent", "model"}


@sign
def verifier_machinery_failed(facts: Facts) -> bool:
    """Files could not be brought to the verifier or fetched by it."""
    return facts.verifier.code in {"upload_failed", "download_failed"}


@sign
def judge_unavailable(facts: Facts) -> bool:
    """The judge that the verifier asks could not be reached."""
    return facts.verifier.code == "judge_unavailable"


@sign
def judge_unparsable(facts: Facts) -> bool:
    """The judge's verdict could not be read."""
    return facts.verifier.code == "judge_unparsable"


@sign
def verifier_cannot_start(facts: Facts) -> bool:
    """The verifier's interpreter or a file that it needs is missing or may not be run (status 126 or 127)."""
    return facts.verifier.status == "error" and facts.verifier.exit_code in {126, 127}


@sign
def verifier_exited_badly(facts: Facts) -> bool:
    """The verifier ended by a signal or with a status other than 0, and left no reward."""
    verifier = facts.verifier
    no_reward = verifier.code in {None, "missing_reward", "verifier_exit"}
    return (
        verifier.status == "error"
        and no_reward
        and (verifier.signal is not None or verifier.exit_code not in {None, 0})
    )


@sign
def left_over_processes(facts: Facts) -> bool:
    """Processes of the model's ran beside the verifier."""
    return (facts.verifier.leftover_agent_processes or 0) > 0


def _controls(facts: Facts, *states: str) -> list[ControlFact]:
    return [control for control in facts.control if control.state in states]


def _rewards(facts: Facts, *states: str) -> list[float]:
    return [
        control.reward
        for control in _controls(facts, *states)
        if control.status == "scored" and control.reward is not None and _usable(control.reward, facts)
    ]


def clean_reward(facts: Facts) -> float | None:
    """The reward of this state once left-over processes are gone or in a fresh sandbox, where all such runs agree."""
    rewards = set(_rewards(facts, "same_after_kill", "same_fresh_sandbox"))
    return rewards.pop() if len(rewards) == 1 else None


@sign
def scored_when_clean(facts: Facts) -> bool:
    """The same state is scored once left-over processes are killed, or in a fresh sandbox."""
    return clean_reward(facts) is not None


@sign
def verifier_disagrees(facts: Facts) -> bool:
    """Runs on one state under equal conditions gave different rewards."""
    first = [facts.verifier.reward] if scored(facts) and facts.verifier.reward is not None else []
    equal = set(first + _rewards(facts, "same"))
    clean = set(_rewards(facts, "same_after_kill", "same_fresh_sandbox"))
    excused = left_over_processes(facts)
    return len(equal) > 1 or len(clean) > 1 or (not excused and len(equal | clean) > 1)


@sign
def controls_blame_model(facts: Facts) -> bool:
    """The same verifier scores the pristine and the oracle's state, and failed twice on this one."""
    failed_here = _controls(facts, "same", "same_after_kill", "same_fresh_sandbox")
    failures = max(facts.verifier.runs or 1, 1) + sum(control.status in {"error", "timeout"} for control in failed_here)
    return (
        verifier_failed(facts)
        and failures >= 2
        and bool(_rewards(facts, "pristine"))
        and bool(_rewards(facts, "oracle"))
    )


@sign
def controls_clear_leftovers(facts: Facts) -> bool:
    """A control run decides that left-over processes are not why the verifier failed."""
    elsewhere = _controls(facts, "pristine", "oracle")
    clean = _controls(facts, "same_after_kill", "same_fresh_sandbox")
    return any(control.status in {"error", "timeout"} for control in (*elsewhere, *clean))

"""Signs of the inference engine's last reply and of the model's last tool call.

They read statuses, counts and the reason of the end, never the reply's text: what a model says decides nothing.
"""

from __future__ import annotations

from envsdk.outcome.facts import Facts
from envsdk.outcome.signs import sign


@sign
def context_exceeded(facts: Facts) -> bool:
    """The request was refused because the transcript fills the window."""
    status = facts.inference.status
    return (facts.inference.code or "").startswith("context_") and (status is None or 400 <= status < 500)


@sign
def reply_failed(facts: Facts) -> bool:
    """The engine answered with an error that is not about the transcript's length."""
    status = facts.inference.status
    if status is None or context_exceeded(facts):
        return False
    return status >= 500 or (400 <= status < 500 and (status != 400 or bool(facts.inference.code)))


@sign
def reply_empty(facts: Facts) -> bool:
    """A 200 without any choice or token."""
    inference = facts.inference
    return _answered(facts) and (inference.choices == 0 or inference.completion_tokens == 0)


@sign
def reply_aborted(facts: Facts) -> bool:
    """A reply that the engine broke off, or that came from a sick replica."""
    return _answered(facts) and (
        facts.inference.finish_reason in {"abort", "error"} or facts.inference.replica_healthy is False
    )


@sign
def reply_cut(facts: Facts) -> bool:
    """The reply used up its tokens."""
    return (
        _answered(facts) and facts.inference.finish_reason == "length" and (facts.inference.completion_tokens or 0) > 0
    )


@sign
def turn_ended_at_once(facts: Facts) -> bool:
    """The model generated its end of turn and nothing else."""
    return (
        _answered(facts) and (facts.inference.completion_tokens or 0) > 0 and facts.inference.finish_reason != "length"
    )


def _answered(facts: Facts) -> bool:
    return facts.inference.status is not None and 200 <= facts.inference.status < 300


@sign
def call_fits(facts: Facts) -> bool:
    """The last tool call fits the declared schema."""
    return facts.tool_calls.last_valid is True


@sign
def call_unfit(facts: Facts) -> bool:
    """The last tool call does not fit the declared schema."""
    return facts.tool_calls.last_valid is False

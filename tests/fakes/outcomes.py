"""Outcomes of episodes that never ran, as classification makes them."""

from __future__ import annotations

import functools

from envsdk.episode.record import Outcome
from envsdk.outcome import classify


@functools.cache
def finished(reward: float) -> Outcome:
    """The outcome of a final answer that a verifier scored."""
    return classify(
        {"phase": "verify", "ended_by": "final_answer", "verifier": {"status": "scored", "reward": float(reward)}}
    )

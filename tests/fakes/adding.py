"""A small family of text tasks; in a file of its own, since the project's pytest plugin collects the tasks that a test module names."""

from __future__ import annotations

import random

from envsdk import AgentSpec, Draw, family, verifier


@verifier
def same(answer: str, *, expected: str) -> float:
    """1 where the answer is the expected number."""
    return float(answer.strip() == expected)


@family(verifier=same, levels={"digits": (1, 2, 3)}, agent=AgentSpec(protocol="answer"))
def adding(rng: random.Random, *, digits: int) -> Draw:
    """Add two numbers."""
    a, b = (rng.randrange(10 ** (digits - 1), 10**digits) for _ in range(2))
    return Draw(instruction=f"{a} + {b} = ?", params={"expected": str(a + b)}, oracle=str(a + b), wrong={"x": "-1"})

"""sums: add whole numbers.

Levels: how many ``terms`` are added, and how many ``digits`` each has: from two digits that a small model sometimes
knows to columns of twelve-digit numbers that no model adds in its head. The verifier reads one whole number and
nothing else.
"""

from __future__ import annotations

import random

from envsdk import AgentSpec, Budget, Draw, Example, family, verifier


@verifier
def is_sum(answer: str, *, expected: int) -> float:
    """1 where the answer is the expected number in ASCII digits, white space at its ends aside."""
    text = answer.strip()
    return float(text.isascii() and text.isdecimal() and len(text) <= 40 and int(text) == expected)


@family(
    verifier=is_sum,
    levels={"terms": (2, 3, 8, 20), "digits": (1, 2, 5, 12)},
    agent=AgentSpec(
        protocol="answer",
        system="You add numbers and reply with the result only.",
        examples=(
            Example(user="What is 2 + 3?", assistant="5"),
            Example(user="What is 7 + 1?", assistant="8"),
            Example(user="What is 4 + 4?", assistant="8"),
            Example(user="What is 9 + 6?", assistant="15"),
        ),
        stop=("\n",),
    ),
    budget=Budget(turns=1, reply_tokens=24, episode_s=120, verify_s=30, total_s=300),
    tags=("text", "arithmetic"),
    predicted_pass=lambda *, terms, digits: 0.08 / (terms - 1) ** 2 / digits**5,
)
def sums(rng: random.Random, *, terms: int, digits: int) -> Draw:
    """Add whole numbers."""
    numbers = [rng.randrange(10 ** (digits - 1), 10**digits) for _ in range(terms)]
    expected = sum(numbers)
    return Draw(
        instruction=f"What is {' + '.join(map(str, numbers))}?",
        params={"expected": expected},
        oracle=str(expected),
        wrong={"one-more": str(expected + 1), "without-the-last": str(expected - numbers[-1]), "term": f"= {expected}"},
        right={"newline": f"{expected}\n"},
    )

"""count-letters: how often a letter stands in a word, a line, a page.

Levels: how many ``words`` the text has, and whether the letter is counted in both cases (``both_cases``), where the
text is in mixed case and the trap is to count one of them. The verifier reads one whole number and nothing else.
"""

from __future__ import annotations

import random

from envsdk import AgentSpec, Budget, Draw, Example, family, verifier


@verifier
def is_count(answer: str, *, expected: int) -> float:
    """1 where the answer is the expected number in ASCII digits, white space at its ends aside."""
    text = answer.strip()
    return float(text.isascii() and text.isdecimal() and int(text[:12]) == expected and len(text) <= 12)


@family(
    verifier=is_count,
    levels={"words": (1, 4, 30, 200), "both_cases": (False, True)},
    agent=AgentSpec(
        protocol="answer",
        system="You count letters and reply with a number only.",
        examples=(
            Example(user="How many times is the letter p in: apple", assistant="2"),
            Example(user="How many times is the letter t in: stone", assistant="1"),
            Example(user="How many times is the letter e in: sleeve", assistant="3"),
            Example(user="How many times is the letter o in: robot", assistant="2"),
        ),
        stop=("\n",),
    ),
    budget=Budget(turns=1, reply_tokens=8, episode_s=120, verify_s=30, total_s=300),
    tags=("text", "count"),
    predicted_pass=lambda *, words, both_cases: 0.42 * words**-0.4 * (0.7 if both_cases else 1.0),
)
def count_letters(rng: random.Random, *, words: int, both_cases: bool) -> Draw:
    """Count a letter in a text."""
    from tasks.words import WORDS

    text = " ".join(rng.choices(WORDS, k=words))
    letter = rng.choice(sorted(set(text) - {" "}))
    if both_cases:
        text = "".join(rng.choice((character, character.upper())) for character in text)
    expected = text.lower().count(letter)
    question = f"the letter {letter}, in either case," if both_cases else f"the letter {letter}"
    return Draw(
        instruction=f"How many times is {question} in: {text}",
        params={"expected": expected},
        oracle=str(expected),
        wrong={"one-more": str(expected + 1), "one-less": str(expected - 1), "in-words": f"{expected} times"},
        right={"newline": f"{expected}\n"},
    )

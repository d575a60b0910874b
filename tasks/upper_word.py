"""upper-word: write words in capital letters.

The easiest family: a 135M model passes many of its first level's tasks with four examples before it. Levels: how many
``words`` there are, and whether some have ``accents``, where capital letters are more than a shifted alphabet
(``ß``). The verifier compares the whole answer, white space at its ends aside.
"""

from __future__ import annotations

import random

from envsdk import AgentSpec, Budget, Draw, Example, family, verifier

ACCENTED = ("café", "naïve", "straße", "jalapeño", "garçon", "smörgåsbord", "fiancée", "über", "crème", "piñata")


@verifier
def is_upper(answer: str, *, expected: str) -> float:
    """1 where the answer is the expected text, white space at its ends aside."""
    return float(answer.strip() == expected)


@family(
    verifier=is_upper,
    levels={"words": (1, 2, 3, 10, 40), "accents": (False, True)},
    agent=AgentSpec(
        protocol="answer",
        system="You write words in capital letters.",
        examples=(
            Example(user="paper, in capital letters", assistant="PAPER"),
            Example(user="window, in capital letters", assistant="WINDOW"),
            Example(user="stone, in capital letters", assistant="STONE"),
            Example(user="garden, in capital letters", assistant="GARDEN"),
        ),
        stop=("\n",),
    ),
    budget=Budget(turns=1, reply_tokens=24, episode_s=120, verify_s=30, total_s=300),
    tags=("text", "transform"),
    predicted_pass=lambda *, words, accents: 0.4**words * (0.1 if accents else 1.0),
)
def upper_word(rng: random.Random, *, words: int, accents: bool) -> Draw:
    """Write words in capital letters."""
    from tasks.words import WORDS

    chosen = rng.sample(WORDS, words)
    if accents:
        for place in rng.sample(range(words), max(1, words // 3)):
            chosen[place] = rng.choice(ACCENTED)
    text = " ".join(chosen)
    expected = text.upper()
    return Draw(
        instruction=f"{text}, in capital letters",
        params={"expected": expected},
        oracle=expected,
        wrong={"as-given": text, "one-letter": expected[:-1] + expected[-1].lower(), "chatty": f"Sure: {expected}"},
        right={"newline": f"{expected}\n", "spaces": f"  {expected} "},
        budget=Budget(turns=1, reply_tokens=max(24, 12 * words), episode_s=120, verify_s=30, total_s=300),
    )

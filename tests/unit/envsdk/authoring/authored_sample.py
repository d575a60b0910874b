"""A module as an author would write it, for the tests beside it. Not a test."""

from __future__ import annotations

import random
from typing import Any

from envsdk import AgentSpec, Draw, Script, family, oracle, task, verifier


@verifier
def is_word(answer: str, *, expected: str) -> bool:
    return answer.strip() == expected


@verifier(kind="state", low=-1.0, high=2.0, pass_mark=1.0)
def has_file(state: Any) -> dict[str, float]:
    return {"reward": 1.0 if state.exists("/app/x") else -1.0, "size": float(len(state.list("/app")))}


@task(verifier=is_word, tags=["greeting"])
def say_hello() -> Draw:
    """Say hello.

    More about it that is not part of the description.
    """
    return Draw(
        instruction="Say hello.",
        params={"expected": "hello"},
        oracle="hello",
        wrong=["bye", ""],
        right={"padded": " hello "},
    )


@task(verifier=has_file, name="make-x")
def make_file() -> Draw:
    return Draw(instruction="Make /app/x.", oracle="touch x", files={"run.sh": "#!/bin/sh\n", "a b.bin": b"\x00"})


@task(verifier=Script("#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n", mode="shared"))
def scripted() -> Draw:
    return Draw(instruction="Anything.", tests={"data.txt": "1"})


@oracle(scripted)
def solve_scripted(draw: Draw) -> str:
    return f"#!/bin/bash\n: {len(draw.instruction)}"


@family(
    verifier=is_word,
    levels={"length": (1, 2, 5), "loud": (False, True)},
    agent=AgentSpec(protocol="command"),
    predicted_pass=lambda *, length, loud: 0.5 / length,
)
def letters(rng: random.Random, *, length: int, loud: bool) -> Draw:
    """Repeat letters."""
    word = "".join(rng.choice("abcdefgh") for _ in range(length))
    word = word.upper() if loud else word
    return Draw(instruction=f"Print {word}.", params={"expected": word}, oracle=f"echo {word}")

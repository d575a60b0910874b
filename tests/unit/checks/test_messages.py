"""Errors that say other words: where an error was asked for, and not what it says."""

from __future__ import annotations

import pytest

from envsdk.checks.mutation import messages

SOURCE = b"""def root(n):
    if n < 0:
        raise ValueError("n must not be negative")
    if n > 9:
        raise OverflowError("far too large")
    return n
"""
ASK = "Write root(n); for a negative n it raises ValueError."


def of(source: bytes, instruction: str) -> list[str]:
    return [mutant.files["/app/a.py"].decode() for mutant in messages.variant("/app/a.py", source, instruction)]


def test_every_text_of_an_error_is_another_and_the_kinds_stay() -> None:
    (made,) = of(SOURCE, ASK)
    assert made.count("not accepted") == 2
    assert "raise ValueError('not accepted')" in made
    assert "raise OverflowError('not accepted')" in made
    assert "negative" not in made


@pytest.mark.parametrize(
    "instruction",
    [
        "Write root(n).",
        "Write root(n); it raises ValueError with the message `n must not be negative`.",
        "Write root(n); it raises ValueError and prints why.",
    ],
)
def test_what_errors_say_stays_where_it_may_have_been_asked_for(instruction: str) -> None:
    assert of(SOURCE, instruction) == []


def test_words_that_the_instruction_gives_stay() -> None:
    assert of(b"def f():\n    raise KeyError('nothing there')\n", "It raises KeyError: nothing there.") == []


@pytest.mark.parametrize("said", ["'name'", "f'{n} is bad'"])
def test_a_word_and_what_is_filled_in_stay(said: str) -> None:
    assert of(f"def f(n):\n    raise KeyError({said})\n".encode(), ASK) == []


@pytest.mark.parametrize(
    "source", [b"def (", b"def f(n):\n    raise ValueError(n)\n", b"def f():\n    raise ValueError\n"]
)
def test_errors_without_a_text_and_what_is_no_python_stay(source: bytes) -> None:
    assert of(source, ASK) == []

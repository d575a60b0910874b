"""Names of parameters and words of errors that a verifier demands of a module."""

from __future__ import annotations

import pytest

from envsdk.checks.lint.asked_of_code import is_said, messages, parameters


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("from temp import kelvin\nkelvin(celsius=3)\n", ["celsius"]),
        ("import temp\ntemp.kelvin(3, digits=1)\n", ["digits"]),
        ("from temp import kelvin\nkelvin(3)\n", []),
        ("from other import kelvin\nkelvin(celsius=3)\n", []),
        ("import temp\ntemp.kelvin(**given)\n", []),
        ("no Python", []),
    ],
)
def test_parameters_of_the_modules_functions_are_seen(test: str, names: list[str]) -> None:
    assert [name for name, _ in parameters("temp", test)] == names


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("with pytest.raises(ValueError, match='must not be negative'):\n    pass\n", ["must not be negative"]),
        ("with pytest.raises(ValueError, match='negative'):\n    pass\n", []),
        ("with pytest.raises(ValueError):\n    pass\n", []),
        ("re.search('must not be', match='must not be')\n", []),
    ],
)
def test_messages_of_two_words_or_more_are_seen(test: str, found: list[str]) -> None:
    assert [message for message, _ in messages(test)] == found


@pytest.mark.parametrize(
    ("message", "known", "said"),
    [
        ("must not be negative", "It must raise ValueError for negative x.", False),
        ("must not be negative", "An error that says: x must not\nbe negative.", True),
        ("^must not be negative$", "x must not be negative", True),
        ("empty input.*no rows", "says `empty input`, then `no rows`", True),
        ("empty input|no rows", "says `empty input`", False),
        ("invalid literal for int", "", True),
    ],
)
def test_a_message_is_said_as_a_phrase_or_is_pythons_own(message: str, known: str, said: bool) -> None:
    assert is_said(message, known) is said

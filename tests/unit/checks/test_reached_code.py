"""What of a module a verifier's function reaches: its helpers, their imports and constants, and nothing that draws."""

from __future__ import annotations

import pytest

from envsdk.checks.reached_code import reached

MODULE = """import random
import re as patterns
from math import isclose
from secrets import token_hex

NUMBER = patterns.compile("[0-9]+")
SEED = random.Random(1)


class Reader:
    def read(self, text):
        return parsed(text)


def parsed(text):
    return NUMBER.findall(text)


def judge(answer):
    return Reader().read(answer) == ["5"]


def near(answer):
    return isclose(float(answer), 5)


def lottery(answer):
    return draw() == answer


def draw():
    return random.random() or token_hex()
"""


@pytest.mark.parametrize(
    ("function", "there", "absent"),
    [
        (
            "judge",
            ["def judge", "class Reader", "def parsed", "NUMBER", "re as patterns"],
            ["random", "isclose", "draw"],
        ),
        ("near", ["def near", "isclose"], ["random", "patterns", "Reader"]),
        ("lottery", ["def lottery", "def draw", "import random", "token_hex"], ["isclose", "Reader", "SEED"]),
    ],
)
def test_what_is_named_on_the_way_is_reached_and_nothing_else(
    function: str, there: list[str], absent: list[str]
) -> None:
    text = reached(MODULE, function)
    assert [word for word in there if word not in text] == []
    assert [word for word in absent if word in text] == []


def test_statements_keep_their_order_and_a_circle_ends() -> None:
    source = "def a():\n    return b()\n\n\ndef b():\n    return a() or c\n\n\nc = 1\n"
    assert reached(source, "a").splitlines() == [
        "def a():",
        "    return b()",
        "def b():",
        "    return a() or c",
        "c = 1",
    ]


def test_every_branch_that_gives_a_name_its_meaning_is_reached() -> None:
    source = "try:\n    from random import random as draw\nexcept ImportError:\n    draw = None\n\n\ndef judge(a):\n    return draw\n"
    assert "ImportError" in reached(source, "judge")


@pytest.mark.parametrize("source", ["def judge(", "x = 1\n", ""])
def test_what_cannot_be_followed_is_taken_whole(source: str) -> None:
    assert reached(source, "judge") == source

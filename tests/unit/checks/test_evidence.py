"""Evidence in parts: facts with their interval, quoted output, rows without jargon, and one diff."""

from __future__ import annotations

import pytest

from envsdk.checks.evidence import Part, parts


def test_an_interval_stands_with_its_share() -> None:
    assert list(parts({"killed": "12 of 14", "interval_95": [0.601, 0.96], "equal": 0})) == [
        Part("fact", "killed", ("12 of 14 (95 % interval 60 to 96 %)",)),
        Part("fact", "equal", ("0",)),
    ]


def test_rows_say_what_they_are_and_the_first_shows_its_diff() -> None:
    rows = [
        {"name": "a/b: twice the number", "weight": "gross", "diff": "-1\n+2"},
        {"name": "one line less", "weight": "fine", "diff": "-x"},
    ]
    assert list(parts({"survivors": rows})) == [
        Part("rows", "survivors", ("a/b: twice the number", "one line less (a small slip)")),
        Part("diff", "the first of the survivors", ("-1", "+2")),
    ]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"step": "one", "outcome": "pass", "why": "reward 1"}, "one: outcome pass, why reward 1"),
        ({"attack": "a link", "verdict": "reward 1"}, "a link: verdict reward 1"),
        ({"where": "/app/x", "what": "the answer"}, "/app/x: what the answer"),
        ({"code": "crlf", "file": "tests/test.sh", "line": 3}, "code crlf, file tests/test.sh, line 3"),
    ],
)
def test_a_rows_own_name_leads(row: dict[str, object], text: str) -> None:
    [part] = parts({"found": [row]})
    assert part.lines == (text,)


def test_several_lines_are_quoted_and_one_is_a_fact() -> None:
    assert list(parts({"output": "a\nb", "reward_file": "x"})) == [
        Part("quote", "output", ("a", "b")),
        Part("fact", "reward file", ("x",)),
    ]


def test_what_is_empty_or_for_programs_is_left_out() -> None:
    assert list(parts({"assessed": False, "survivors": [], "output": "", "interval_95": [0, 1], "none": None})) == []

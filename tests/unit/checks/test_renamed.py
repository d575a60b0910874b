"""The same program in other words: it does the same, and says what it must say."""

from __future__ import annotations

import contextlib
import io

import pytest

from envsdk.checks.mutation.renamed import variant

SCRIPT = b"import sys\n\nseen = set()\nfor word in ['a', 'b', 'a']:\n    if word not in seen:\n        seen.add(word)\n        print(word)\n"
MODULE = b"LIMIT = 3\n\n\ndef total(values):\n    result = 0\n    for value in values[:LIMIT]:\n        result += value\n    return result\n"


def other(source: bytes, instruction: str = "") -> str:
    found = list(variant("/app/a.py", source, instruction))
    return found[0].files["/app/a.py"].decode() if found else ""


def printed(source: str | bytes) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(source, {})
    return out.getvalue()


def test_a_script_says_the_same_with_other_names() -> None:
    assert "seen = set()" not in other(SCRIPT)
    assert printed(other(SCRIPT)) == printed(SCRIPT) == "a\nb\n"


def test_a_module_keeps_what_others_may_ask_of_it() -> None:
    space: dict[str, object] = {}
    exec(other(MODULE), space)
    assert {"LIMIT", "total"} <= set(space)
    assert space["total"]([1, 2, 3, 4]) == 6  # type: ignore[operator]
    assert "result_too" in other(MODULE)


@pytest.mark.parametrize(
    ("source", "instruction"),
    [
        (SCRIPT, "Use a variable for it."),
        (SCRIPT, "Keep the format of the source."),
        (b"print(1)\n", ""),
        (b"x = 1\nprint(locals())\n", ""),
        (b"def f():\n    global x\n    x = 1\n", ""),
        (b"def f():\n    x = 1\n\n    def g():\n        nonlocal x\n        x = 2\n", ""),
        (b"sum = [1]\nprint(sum)\n", ""),
        (b"this is no Python\n", ""),
    ],
)
def test_where_names_may_matter_nothing_is_renamed(source: bytes, instruction: str) -> None:
    assert other(source, instruction) == ""


def test_names_of_the_instruction_stay() -> None:
    assert "seen = set()" in other(SCRIPT, "Lines that were seen are dropped.")


def test_what_an_inner_function_reads_stays() -> None:
    source = b"def outer(n):\n    step = 2\n\n    def inner():\n        own = step\n        return own\n\n    return inner()\n"
    space: dict[str, object] = {}
    exec(other(source) or source, space)
    assert space["outer"](1) == 2  # type: ignore[operator]

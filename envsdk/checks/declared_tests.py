"""Tests that a verifier's own files declare, and how many of them are marked to be left out."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Declared:
    """Counted in the sources: tests in all, and those that a marker leaves out where nothing lifts it."""

    tests: int
    left_out: int


_TESTS = re.compile(
    r"^\s*(?:async )?def test_\w+|^\s*(?:TEST_CASE|TEMPLATE_TEST_CASE|SCENARIO|TEST|TEST_F|TEST_P)\s*\("
    r"|^\s*#\[(?:tokio::)?test\]|^\s*func Test\w+\(|^\s*@Test\b|^\s*(?:x?(?:it|test)|(?:it|test)\.(?:skip|todo))\s*\(",
    re.MULTILINE,
)
_ALWAYS = re.compile(
    r"^\s*@(?:unittest\.)?skip\(|^\s*@pytest\.mark\.skip\b|^\s*#\[ignore\b|\bt\.Skip(?:Now)?\(|^\s*@(?:Disabled|Ignore)\b"
    r"|^\s*(?:x(?:it|test)|(?:it|test)\.(?:skip|todo))\s*\(|\bGTEST_SKIP\(",
    re.MULTILINE,
)
_UNLESS_SET = re.compile(r"(?:skipUnless|skipif|skipIf)\([^\n]*?environ(?:\.get\(|\[)\s*[\"'](?P<name>\w+)[\"']")
_DECORATOR = re.compile(
    r"^(?P<alias>\w+)\s*=\s*(?P<marker>.*(?:skipUnless|skipif|skipIf|mark\.skip)\b.*)$", re.MULTILINE
)

_LIFTED = re.compile(r"include-ignored|--ignored|RUN_ALL|sed\b[^\n]*(?:[Ss]kip|ignore|Disabled|xtest|xit)")


def own_tests(tests: Mapping[str, str], scripts: str) -> dict[str, str]:
    """Sources in which the verifier's own tests stand, by path.

    Where its scripts name some of them, those in folders that they do not name are data: a sample project, another
    platform's suite.
    """
    sources = {path: text for path, text in tests.items() if not path.endswith(".sh")}
    named = {path for path in sources if re.search(rf"(?<![\w.-]){re.escape(posixpath.basename(path))}", scripts)}
    return {path: text for path, text in sources.items() if not named or path in named or path.count("/") == 1}


def count_tests(tests: Mapping[str, str], settings: str) -> Declared:
    """Count in the texts of the verifier's files.

    Args:
        tests: text by path.
        settings: everything that could set a variable or lift a marker: scripts, Dockerfile, declared environment.
    """
    total = left_out = 0
    for text in tests.values():
        total += len(_TESTS.findall(text))
        left_out += len(_ALWAYS.findall(text))
        left_out += _conditional(text, settings)
    return Declared(total, 0 if _LIFTED.search(settings) else left_out)


def _conditional(text: str, settings: str) -> int:
    """Uses of markers that depend on a variable which nothing sets."""
    conditions = (match for match in _UNLESS_SET.finditer(text) if match["name"] not in settings)
    uses = sum(_is_decorator(text, match.start()) for match in conditions)
    for alias in _DECORATOR.finditer(text):
        unset = _UNLESS_SET.search(alias["marker"])
        if unset is not None and unset["name"] not in settings:
            uses += len(re.findall(rf"^\s*@{re.escape(alias['alias'])}\b", text, re.MULTILINE))
    return uses


def _is_decorator(text: str, position: int) -> bool:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line.lstrip().startswith("@")

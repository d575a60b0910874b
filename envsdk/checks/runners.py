"""What test runners print about themselves: how many tests ran, how many were skipped.

Read: pytest, unittest, CTest, Catch2, GoogleTest, cargo, go, node and other TAP, Jest, Mocha, JUnit and Surefire,
PHPUnit, RSpec. Only a runner's own summary is read, plain text after terminal colours are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from envsdk.files.output import plain


@dataclass(frozen=True, slots=True)
class Counts:
    """One runner's summary."""

    runner: str
    ran: int
    skipped: int


Reader = Callable[[str], Iterator[Counts]]
_PYTEST_PART = r"\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)"
_PYTEST = re.compile(rf"^=*\s*(?P<parts>{_PYTEST_PART}(?:, {_PYTEST_PART})*|no tests ran) in [\d.]+s.*$", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\s*(?:OK|FAILED|NO TESTS RAN)?(?P<rest>[^\n]*)", re.MULTILINE)
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;", re.MULTILINE)
_CTEST = re.compile(r"tests passed, \d+ tests? failed out of (\d+)")
_CATCH_OLD = re.compile(r"assertions? in (\d+) test cases?\)")
_CATCH = re.compile(r"^test cases:\s*(\d+)\s*\|(?P<rest>.*)$", re.MULTILINE)
_GTEST = re.compile(r"^\[==========\] (\d+) tests? from \d+ test (?:suites?|cases?) ran\.", re.MULTILINE)
_GTEST_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) tests?", re.MULTILINE)
_TAP_PLAN = re.compile(r"^1\.\.(\d+)\b", re.MULTILINE)
_TAP_LINE = re.compile(r"^\s*(?:not )?ok \d+\b(?P<rest>.*)$", re.MULTILINE)
_NODE = re.compile(r"^(?:#|ℹ) tests (\d+)$.*?^(?:#|ℹ) skipped (\d+)$", re.MULTILINE | re.DOTALL)
_JEST = re.compile(r"^Tests:\s+(?P<parts>.*?)(\d+) total", re.MULTILINE)
_MOCHA = re.compile(r"^\s*(\d+) passing(?: \([^)]*\))?\s*$", re.MULTILINE)
_XML = re.compile(r"<testsuite\b(?P<rest>[^>]*)>")
_SUREFIRE = re.compile(r"Tests run: (\d+), Failures: \d+, Errors: \d+, Skipped: (\d+)(?!.*Time elapsed)")
_PHPUNIT = re.compile(r"^Tests: (\d+), Assertions: \d+(?P<rest>[^\n]*)", re.MULTILINE)
_RSPEC = re.compile(r"^(\d+) examples?, \d+ failures?(?:, (\d+) pending)?", re.MULTILINE)


def read_counts(text: str) -> list[Counts]:
    """Every summary in a text, in no particular order."""
    shown = plain(text).replace("\r\n", "\n")
    return [counts for reader in READERS for counts in reader(shown)]


def _number(word: str, text: str) -> int:
    found = re.search(rf"(\d+) {word}", text)
    return int(found[1]) if found else 0


def _pytest(text: str) -> Iterator[Counts]:
    for match in _PYTEST.finditer(text):
        parts = match["parts"]
        ran = sum(_number(word, parts) for word in ("passed", "failed", "error", "xfailed", "xpassed"))
        yield Counts("pytest", ran, _number("skipped", parts) + _number("deselected", parts))


def _unittest(text: str) -> Iterator[Counts]:
    for match in _UNITTEST.finditer(text):
        skipped = re.search(r"skipped=(\d+)", match["rest"])
        aside = int(skipped[1]) if skipped else 0
        yield Counts("unittest", int(match[1]) - aside, aside)


def _cargo(text: str) -> Iterator[Counts]:
    found = [tuple(map(int, match.groups())) for match in _CARGO.finditer(text)]
    if found:  # one summary for each test binary, most of them empty
        yield Counts("cargo", sum(row[0] + row[1] for row in found), sum(row[2] for row in found))


def _ctest(text: str) -> Iterator[Counts]:
    if "No tests were found!!!" in text:
        yield Counts("CTest", 0, 0)
    for match in _CTEST.finditer(text):
        skipped = len(re.findall(r"\*\*\*(?:Skipped|Not Run)", text))
        yield Counts("CTest", int(match[1]) - skipped, skipped)


def _catch(text: str) -> Iterator[Counts]:
    for match in _CATCH.finditer(text):
        skipped = _number("skipped", match["rest"])
        yield Counts("Catch2", int(match[1]) - skipped, skipped)
    for match in _CATCH_OLD.finditer(text):
        yield Counts("Catch2", int(match[1]), 0)
    if re.search(r"^No tests? (?:cases )?ran", text, re.MULTILINE):
        yield Counts("Catch2", 0, 0)


def _gtest(text: str) -> Iterator[Counts]:
    for match in _GTEST.finditer(text):
        aside = _GTEST_SKIPPED.search(text)
        skipped = int(aside[1]) if aside else 0
        yield Counts("GoogleTest", int(match[1]) - skipped, skipped)


def _go(text: str) -> Iterator[Counts]:
    ran = len(re.findall(r"^\s*--- (?:PASS|FAIL): ", text, re.MULTILINE))
    skipped = len(re.findall(r"^\s*--- SKIP: ", text, re.MULTILINE))
    nothing = "no tests to run" in text or "[no test files]" in text
    if ran or skipped or nothing:
        yield Counts("go", ran, skipped)


def _tap(text: str) -> Iterator[Counts]:
    if node := _NODE.search(text):
        yield Counts("node", int(node[1]) - int(node[2]), int(node[2]))
        return
    plan = _TAP_PLAN.search(text)
    if plan:
        lines = [match["rest"] for match in _TAP_LINE.finditer(text)]
        skipped = sum("# skip" in line.lower() for line in lines)
        yield Counts("TAP", len(lines) - skipped, skipped)


def _javascript(text: str) -> Iterator[Counts]:
    for match in _JEST.finditer(text):
        skipped = _number("skipped", match["parts"]) + _number("todo", match["parts"])
        yield Counts("Jest", int(match[2]) - skipped, skipped)
    for match in _MOCHA.finditer(text):
        yield Counts("Mocha", int(match[1]) + _number("failing", text), _number("pending", text))


def _xml(text: str) -> Iterator[Counts]:
    for match in _XML.finditer(text):
        said = dict(re.findall(r'(tests|skipped|disabled)="(\d+)"', match["rest"]))
        if "tests" in said:
            skipped = int(said.get("skipped", 0)) + int(said.get("disabled", 0))
            yield Counts("JUnit", int(said["tests"]) - skipped, skipped)


def _others(text: str) -> Iterator[Counts]:
    for match in _SUREFIRE.finditer(text):
        yield Counts("Surefire", int(match[1]) - int(match[2]), int(match[2]))
    for match in _PHPUNIT.finditer(text):
        skipped = re.search(r"Skipped: (\d+)", match["rest"])
        aside = int(skipped[1]) if skipped else 0
        yield Counts("PHPUnit", int(match[1]) - aside, aside)
    for match in _RSPEC.finditer(text):
        pending = int(match[2] or 0)
        yield Counts("RSpec", int(match[1]) - pending, pending)


READERS: tuple[Reader, ...] = (
    _pytest,
    _unittest,
    _cargo,
    _ctest,
    _catch,
    _gtest,
    _go,
    _tap,
    _javascript,
    _xml,
    _others,
)

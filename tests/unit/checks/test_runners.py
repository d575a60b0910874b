"""Summaries of test runners, as they print them."""

from __future__ import annotations

import pytest

from envsdk.checks.declared_tests import Declared, count_tests, own_tests
from envsdk.checks.runners import Counts, read_counts
from envsdk.checks.skip_ratio import judge

CARGO = (
    "test result: ok. 1 passed; 0 failed; 16 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
    "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("===== 3 passed, 1 skipped in 0.12s =====", Counts("pytest", 3, 1)),
        ("1 failed, 2 passed, 4 deselected in 1.02s", Counts("pytest", 3, 4)),
        ("\x1b[32m\x1b[1m2 passed\x1b[0m, \x1b[33m1 xfailed\x1b[0m\x1b[32m in 0.01s\x1b[0m", Counts("pytest", 3, 0)),
        ("no tests ran in 0.00s", Counts("pytest", 0, 0)),
        ("4 skipped in 0.00s", Counts("pytest", 0, 4)),
        ("Ran 5 tests in 0.001s\n\nOK (skipped=4)", Counts("unittest", 1, 4)),
        ("Ran 0 tests in 0.000s\n\nOK", Counts("unittest", 0, 0)),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", Counts("unittest", 0, 0)),
        ("Ran 3 tests in 1.200s\n\nFAILED (failures=1, skipped=1)", Counts("unittest", 2, 1)),
        (CARGO, Counts("cargo", 1, 16)),
        ("100% tests passed, 0 tests failed out of 7\n", Counts("CTest", 7, 0)),
        ("1/2 Test #1: a .....***Skipped   0.0 sec\n100% tests passed, 0 tests failed out of 2", Counts("CTest", 1, 1)),
        ("No tests were found!!!", Counts("CTest", 0, 0)),
        ("All tests passed (5 assertions in 1 test case)", Counts("Catch2", 1, 0)),
        ("test cases: 17 | 1 passed | 16 skipped\nassertions: 1 | 1 passed", Counts("Catch2", 1, 16)),
        (
            "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  SKIPPED ] 2 tests, listed below:",
            Counts("GoogleTest", 1, 2),
        ),
        (
            "--- PASS: TestA (0.00s)\n    --- SKIP: TestA/sub (0.00s)\n--- SKIP: TestB (0.00s)\nok  \tx\t0.01s",
            Counts("go", 1, 2),
        ),
        ("testing: warning: no tests to run\nPASS\nok  \tx\t0.01s [no tests to run]", Counts("go", 0, 0)),
        ("1..3\nok 1 - a\nok 2 - b # SKIP later\nnot ok 3 - c", Counts("TAP", 2, 1)),
        ("1..0", Counts("TAP", 0, 0)),
        ("# tests 9\n# suites 1\n# pass 1\n# fail 0\n# cancelled 0\n# skipped 8\n# todo 0", Counts("node", 1, 8)),
        ("Tests:       8 skipped, 1 passed, 9 total", Counts("Jest", 1, 8)),
        ("  1 passing (5ms)\n  8 pending", Counts("Mocha", 1, 8)),
        ('<testsuites><testsuite name="x" tests="5" failures="0" skipped="4"/></testsuites>', Counts("JUnit", 1, 4)),
        ("[INFO] Tests run: 9, Failures: 0, Errors: 0, Skipped: 8", Counts("Surefire", 1, 8)),
        ("Tests: 5, Assertions: 1, Skipped: 4.", Counts("PHPUnit", 1, 4)),
        ("5 examples, 0 failures, 4 pending", Counts("RSpec", 1, 4)),
    ],
)
def test_a_summary_is_read(text: str, expected: Counts) -> None:
    assert read_counts(text) == [expected]
    assert read_counts(f"building...\r\n{text}\r\ndone\r\n") == [expected]


@pytest.mark.parametrize(
    "text", ["", "PASS 2\nFAIL 5\n0 failed", "3 passed", "Tests pass.", "ok", "0 failed", "10 passing grades"]
)
def test_what_is_no_runners_summary_is_not_read(text: str) -> None:
    assert read_counts(text) == []


PYTHON = """
import os, unittest
ALL = unittest.skipUnless(os.environ.get("RUN_THEM"), "set it")
class T(unittest.TestCase):
    def test_a(self): ...
    @ALL
    def test_b(self): ...
    @ALL
    def test_c(self): ...
    @unittest.skipUnless(os.environ.get("RUN_THEM"), "set it")
    def test_d(self): ...
"""


def test_markers_that_depend_on_an_unset_variable_count_as_left_out() -> None:
    assert count_tests({"t.py": PYTHON}, "python3 /tests/t.py") == Declared(4, 3)


def test_a_variable_that_something_sets_lifts_its_markers() -> None:
    assert count_tests({"t.py": PYTHON}, "RUN_THEM=1 python3 /tests/t.py") == Declared(4, 0)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("#[test]\nfn a() {}\n#[test]\n#[ignore]\nfn b() {}\n", Declared(2, 1)),
        ("test('a', f)\nxtest('b', f)\nit.skip('c', f)\n", Declared(3, 2)),
        ('TEST_CASE("a") {}\nTEST_CASE("b") {}\n', Declared(2, 0)),
        ("@Test\nvoid a() {}\n@Disabled\n@Test\nvoid b() {}\n", Declared(2, 1)),
        ("@pytest.mark.skip\ndef test_a(): ...\ndef test_b(): ...\n", Declared(2, 1)),
        ("def helper(): ...\n", Declared(0, 0)),
    ],
)
def test_tests_and_markers_of_other_runners_are_counted(source: str, expected: Declared) -> None:
    assert count_tests({"t": source}, "") == expected


def test_a_script_that_lifts_markers_leaves_none_out() -> None:
    assert count_tests({"t": "#[test]\n#[ignore]\nfn b() {}\n"}, "cargo test -- --include-ignored").left_out == 0


@pytest.mark.parametrize(
    ("counts", "declared", "outcome"),
    [
        ([Counts("pytest", 4, 1)], Declared(5, 1), "pass"),
        ([Counts("pytest", 1, 1)], Declared(2, 1), "fail"),
        ([Counts("pytest", 0, 0)], Declared(1, 0), "fail"),
        ([Counts("Catch2", 1, 0)], Declared(17, 0), "fail"),
        ([Counts("pytest", 9, 0)], Declared(3, 0), "pass"),
        ([Counts("cargo", 3, 0), Counts("pytest", 1, 1)], Declared(0, 0), "pass"),
        ([], Declared(0, 0), "pass"),
        ([], Declared(5, 4), "fail"),
        ([], Declared(5, 2), "pass"),
    ],
)
def test_too_many_skipped_or_none_run_is_a_fault(counts: list[Counts], declared: Declared, outcome: str) -> None:
    assert judge(counts, declared).outcome == outcome


SOURCES = {"tests/test.sh": "", "tests/test_a.py": "a", "tests/test_b.py": "b", "tests/sample/test_c.py": "c"}


@pytest.mark.parametrize(
    ("scripts", "kept"),
    [
        ("pytest /tests/test_a.py", {"tests/test_a.py", "tests/test_b.py"}),
        ("pytest /tests", {"tests/test_a.py", "tests/test_b.py", "tests/sample/test_c.py"}),
        ("pytest /tests/sample/test_c.py", {"tests/test_a.py", "tests/test_b.py", "tests/sample/test_c.py"}),
        ("pytest /tests/my_test_a.py", {"tests/test_a.py", "tests/test_b.py", "tests/sample/test_c.py"}),
    ],
)
def test_tests_of_a_sample_are_not_the_verifiers_where_its_own_are_named(scripts: str, kept: set[str]) -> None:
    assert set(own_tests(SOURCES, scripts)) == kept

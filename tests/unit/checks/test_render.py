"""Reports as text, JUnit XML and a page."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from envsdk.checks.junit import junit
from envsdk.checks.page import page
from envsdk.checks.render import details, evidence_lines, lines, rerun_line, summary_line
from envsdk.checks.report import CheckReport, CheckResult

GOOD = CheckResult(check="oracle", outcome="pass", why="reward 1", seconds=0.5)
BAD = CheckResult(
    check="mutants",
    outcome="fail",
    why="a wrong <submission> passes",
    fix='judge "all" & more',
    evidence={
        "killed": "1 of 2",
        "survivors": [{"name": "x", "weight": "gross", "diff": "-1\n+2"}],
        "output": "a\x00\x1b[31mb\nc",
    },
)
UNKNOWN = CheckResult(check="clock", outcome="error", why="not tried")
ASIDE = CheckResult(check="echo", outcome="skipped", why="no answer")


def report(*checks: CheckResult, verdict: str = "fail") -> CheckReport:
    return CheckReport(
        slug="my task", task_digest="a" * 64, verifier_digest="b" * 64, verdict=verdict, complete=True, checks=checks
    )


def test_a_task_is_one_line_with_its_counts() -> None:
    assert (
        summary_line(report(GOOD, BAD, UNKNOWN, ASIDE)) == "✘ my task  fail: 1 passed, 1 failed, 1 undecided, 1 skipped"
    )


LACKING = ASIDE.model_copy(update={"why": "the task has no oracle", "evidence": {"assessed": False}})


def test_what_could_not_be_asked_makes_a_pass_incomplete_and_says_why_once() -> None:
    lacking = [LACKING.model_copy(update={"check": name}) for name in ("mutants", "repeat")]
    assert summary_line(report(GOOD, *lacking, verdict="pass")) == (
        "○ my task  incomplete: no oracle; 1 passed, 2 skipped"
    )
    assert summary_line(report(*lacking, verdict="incomplete")) == "○ my task  incomplete: no oracle; 2 skipped"
    shown = page([report(GOOD, *lacking, verdict="pass")])
    assert "0 of 1 tasks pass their checks" in shown
    assert '<h2 class="incomplete">○ my task: incomplete: no oracle</h2>' in shown


def test_what_does_not_apply_takes_nothing_from_a_pass() -> None:
    assert summary_line(report(GOOD, ASIDE, verdict="pass")) == "✔ my task  pass: 1 passed, 1 skipped"


@pytest.mark.parametrize(("verdict", "mark"), [("fail", "✘"), ("error", "?")])
def test_what_was_found_goes_before_what_could_not_be_asked(verdict: str, mark: str) -> None:
    assert summary_line(report(GOOD, LACKING, verdict=verdict)).startswith(f"{mark} my task  {verdict}: 1 passed")


def test_what_passed_is_shown_only_where_asked_for() -> None:
    short = "\n".join(lines(report(GOOD, BAD), "my dir", every_check=False))
    assert "oracle" not in short
    assert "✔ oracle" in "\n".join(lines(report(GOOD, BAD), "my dir", every_check=True))


def test_a_reason_that_leaves_several_checks_undecided_is_said_once() -> None:
    others = [UNKNOWN.model_copy(update={"check": name}) for name in ("hash_seed", "load")]
    different = UNKNOWN.model_copy(update={"check": "leak", "why": "lost"})
    shown = "\n".join(lines(report(UNKNOWN, *others, different, BAD), "my dir", every_check=False))
    assert shown.count("not tried") == 1
    assert "? for the same reason: hash_seed, load\n" in shown
    assert "? leak           lost" in shown
    assert "✘ mutants" in shown


def test_failures_are_never_put_together() -> None:
    again = BAD.model_copy(update={"check": "tamper"})
    shown = "\n".join(lines(report(BAD, again), "my dir", every_check=False))
    assert shown.count("a wrong <submission> passes") == 2


def test_a_failure_says_evidence_fix_and_how_to_ask_again() -> None:
    shown = list(details(BAD, "my dir"))
    assert "killed: 1 of 2" in shown
    assert "survivors: x" in shown
    assert "    -1" in shown
    assert 'fix: judge "all" & more' in shown
    assert (
        shown[-1]
        == "rerun: envsdk check 'my dir' --checks mutants --fresh"
        == f"rerun: {rerun_line('my dir', 'mutants')}"
    )


def test_long_evidence_is_cut_and_says_so() -> None:
    result = BAD.model_copy(update={"evidence": {"output": "\n".join(map(str, range(100)))}})
    assert evidence_lines(result)[:2] == ["output:", "    0"]
    assert evidence_lines(result)[-1] == "... 85 lines more with --json"


def test_a_long_list_leaves_room_for_the_diff() -> None:
    rows = [{"name": f"variant {n}", "weight": "fine", "diff": f"-1\n+{n}"} for n in range(20)]
    shown = evidence_lines(BAD.model_copy(update={"evidence": {"killed": "0 of 20", "survivors": rows}}))
    assert "    variant 0 (a small slip)" in shown
    assert shown[-3:] == ["    -1", "    +0", "... 13 lines more with --json"]


def test_junit_counts_and_carries_messages_without_characters_that_xml_lacks() -> None:
    suite = ET.fromstring(junit([report(GOOD, BAD, UNKNOWN, ASIDE)])).find("testsuite")
    assert suite is not None
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    failure = suite.find("testcase[@name='mutants']/failure")
    assert failure is not None
    assert failure.get("message") == "a wrong <submission> passes"
    assert "output:\n    ab\n    c" in (failure.text or "")
    assert {p.get("name") for p in suite.iter("property")} >= {"task_digest", "verifier_digest"}


def test_the_page_needs_nothing_else_and_escapes() -> None:
    text = page([report(GOOD, BAD), report(GOOD, verdict="pass")])
    assert "1 of 2 tasks pass" in text
    assert "a wrong &lt;submission&gt; passes" in text
    assert "<submission>" not in text
    assert "http" not in text
    assert "src=" not in text
    assert "<details open><summary>evidence" in text

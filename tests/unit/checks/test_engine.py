"""The engine: every check one result, one that breaks takes no other along, unchanged content is not asked again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from envsdk.authoring.scaffold import scaffold
from envsdk.checks import engine, kept
from envsdk.checks.catalogue import CHECKS, choose
from envsdk.checks.check import (
    Check,
    Finding,
    expect_low,
    fails,
    is_full,
    is_low,
    not_assessed,
    passes,
    said,
    undecided,
)
from envsdk.checks.engine import check_task, check_tasks, verdict_of
from envsdk.checks.report import CheckResult
from envsdk.checks.stage import Stage
from envsdk.errors import SandboxError, UsageError
from envsdk.spec.model import Task, VerifierSpec
from envsdk.verifying.verdict import Verdict


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return scaffold(tmp_path / "first", kind="text")


def use(monkeypatch: pytest.MonkeyPatch, **findings: Finding | Exception) -> list[str]:
    """Replace the catalogue; returns the ids that were asked, as they are asked."""
    asked: list[str] = []

    def check(name: str, answer: Finding | Exception) -> Check:
        async def examine(_: Stage) -> Finding:
            asked.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return Check(name, "?", f"mend {name}", examine)

    made = tuple(check(name, answer) for name, answer in findings.items())
    monkeypatch.setattr(engine, "choose", lambda ids: tuple(c for c in made if ids is None or c.id in set(ids)))
    return asked


async def test_a_scaffolded_task_checks_green(task: Task) -> None:
    report = await check_task(task, None)
    assert report.verdict == "pass", [(r.check, r.why) for r in report.checks if r.outcome != "pass"]
    assert report.complete
    assert [result.check for result in report.checks] == [check.id for check in CHECKS]
    assert report.task_digest == task.digests.task


async def test_one_check_that_breaks_is_its_own_finding(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    use(
        monkeypatch,
        good=passes("fine"),
        lost=SandboxError("gone"),
        odd=ZeroDivisionError("x"),
        bad=fails("wrong", seen=1),
    )
    report = await check_task(task, None)
    outcomes = {result.check: (result.outcome, result.why) for result in report.checks}
    assert outcomes == {
        "good": ("pass", "fine"),
        "lost": ("error", "gone"),
        "odd": ("error", "the check itself failed: ZeroDivisionError: x"),
        "bad": ("fail", "wrong"),
    }
    assert report.verdict == "fail"
    assert not report.complete
    assert {result.check: result.fix for result in report.checks} == {
        "good": "",
        "lost": "",
        "odd": "",
        "bad": "mend bad",
    }


async def test_unchanged_content_is_asked_once(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = use(monkeypatch, one=passes(), two=fails("no"))
    first = await check_task(task, None)
    heard: list[CheckResult] = []
    assert await check_task(task, None, heard=heard.append) == first
    assert sorted(asked) == ["one", "two"]
    assert [result.check for result in heard] == ["one", "two"]
    await check_task(task, None, fresh=True)
    assert len(asked) == 4


async def test_other_checks_or_other_content_are_asked_again(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = use(monkeypatch, one=passes(), two=passes())
    await check_task(task, None)
    await check_task(task, None, checks=["one"])
    assert asked.count("one") == 2
    assert kept.find(task, ["one", "two"], "") is not None, "a partial report does not take the whole one's place"
    (task.root / "notes.txt").write_text("changed")
    from envsdk.spec.load import load_task

    await check_task(load_task(task.root), None)
    assert asked.count("two") == 2


async def test_a_report_with_an_undecided_check_is_not_kept(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = use(monkeypatch, one=undecided("cannot tell"))
    assert (await check_task(task, None)).verdict == "error"
    await check_task(task, None)
    assert asked == ["one", "one"]


async def test_strict_takes_undecided_and_not_assessed_for_failures_and_nothing_else(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = Finding("skipped", "has no meaning")
    use(monkeypatch, good=passes(), unknown=undecided("cannot tell"), lacking=not_assessed("no oracle"), aside=aside)
    report = await check_task(task, None, strict=True)
    assert {result.check: result.outcome for result in report.checks} == {
        "good": "pass",
        "unknown": "fail",
        "lacking": "fail",
        "aside": "skipped",
    }
    assert report.verdict == "fail"


async def test_what_was_not_assessed_leaves_a_report_incomplete(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, good=passes(), lacking=not_assessed("no oracle"))
    report = await check_task(task, None)
    assert (report.verdict, report.complete) == ("pass", False)


async def test_many_tasks_keep_their_order_and_are_heard_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, one=passes())
    tasks = [scaffold(tmp_path / f"t{number}", kind="text") for number in range(4)]
    heard: list[str] = []
    reports = await check_tasks(tasks, None, at_once=2, heard=lambda report: heard.append(report.slug))
    assert [report.slug for report in reports] == ["t0", "t1", "t2", "t3"]
    assert sorted(heard) == ["t0", "t1", "t2", "t3"]


async def test_a_folder_that_cannot_keep_reports_is_no_fault(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").write_text("a file stands here")
    use(monkeypatch, one=passes())
    assert (await check_task(task, None)).verdict == "pass"


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (["pass", "skipped"], "pass"),
        (["pass", "error"], "error"),
        (["error", "fail"], "fail"),
        (["skipped"], "incomplete"),
        ([], "incomplete"),
    ],
)
def test_a_verdict_is_its_worst_outcome(outcomes: list[str], verdict: str) -> None:
    assert verdict_of(CheckResult(check="x", outcome=outcome) for outcome in outcomes) == verdict


def test_an_unknown_check_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean"):
        choose(["ooracle"])
    assert [check.id for check in choose(["noop", "oracle"])] == ["oracle", "noop"]


def test_ids_are_unique_and_every_check_says_what_it_asks_and_what_to_do() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(check.question.endswith("?") and check.fix for check in CHECKS)


@pytest.mark.parametrize(
    ("verdict", "full", "low", "outcome", "words"),
    [
        (Verdict("scored", 1.0), True, False, "fail", "reward 1"),
        (Verdict("scored", 0.5), False, True, "pass", "reward 0.5"),
        (Verdict("error", code="missing_reward"), False, False, "fail", "no reward: missing_reward"),
        (Verdict("timeout", code="verifier_timeout"), False, False, "fail", "no reward: verifier_timeout"),
        (Verdict("error", code="sandbox_lost"), False, False, "error", "no reward: sandbox_lost"),
    ],
)
def test_what_must_stay_low(verdict: Verdict, full: bool, low: bool, outcome: str, words: str) -> None:
    spec = VerifierSpec()
    assert (is_full(verdict, spec), is_low(verdict, spec)) == (full, low)
    assert expect_low(verdict, spec, "it").outcome == outcome
    assert said(verdict) == words


def test_success_begins_at_the_pass_mark() -> None:
    assert is_full(Verdict("scored", 0.6), VerifierSpec(pass_mark=0.5))


async def test_what_would_disturb_the_others_is_asked_when_they_are_done(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def check(name: str, *, alone: bool) -> Check:
        async def examine(_: Stage) -> Finding:
            asked.append(f"{name} begins")
            await asyncio.sleep(0.01)
            asked.append(f"{name} ends")
            return passes()

        return Check(name, "?", "mend it", examine, alone=alone)

    made = (check("loud", alone=True), check("quiet", alone=False), check("soft", alone=False))
    monkeypatch.setattr(engine, "choose", lambda _: made)
    report = await engine.check_task(task, None)
    assert asked[-2:] == ["loud begins", "loud ends"]
    assert asked[:2] == ["quiet begins", "soft begins"]
    assert [result.check for result in report.checks] == ["loud", "quiet", "soft"]

"""The judge of miniature tasks compares what running showed with what the checks found, and the plays with it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from envsdk.checks.report import CheckReport, CheckResult
from envsdk.conformance import verifier_cases
from envsdk.conformance.run import Case, SkipCaseError, read_cases
from envsdk.conformance.verifier_cases import judge_verifier

CASES = {
    case.id: case
    for case in read_cases(Path(__file__).parents[2] / "conformance" / "cases" / "verifier_defects")
    if case.kind == "verifier_defects"
}


RAN = ("oracle", "noop", "empty", "malformed", "planted_reward", "repeat", "clock", "hash_seed", "tamper")


def checker(monkeypatch: pytest.MonkeyPatch, *, played: str = "pass", **failed: str) -> None:
    """A checker whose checks all pass but those named, which fail for the reason given; plays end as ``played``."""

    async def checked(folder: Path, *, checks=None) -> CheckReport:
        if checks is not None:
            results = [CheckResult(check=name, outcome=played) for name in checks]
        else:
            results = [
                CheckResult(check=name, outcome="fail" if name in failed else "pass", why=failed.get(name, ""))
                for name in RAN
            ]
        return CheckReport(
            slug="s", task_digest="t", verifier_digest="v", verdict="pass", complete=True, checks=tuple(results)
        )

    monkeypatch.setattr(verifier_cases, "_checked", checked)


def with_runs(name: str, **runs: str) -> Case:
    case = CASES[name]
    body = copy.deepcopy(dict(case.body))
    body["expected"]["runs"] |= runs
    return Case(case.kind, case.id, body, case.head, case.path)


def test_what_was_found_as_running_showed_it_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    checker(monkeypatch)
    judge_verifier(CASES["good-plain"])


@pytest.mark.parametrize(
    "runs",
    [
        {"noop": "pass"},
        {"empty": "error:missing_reward"},
        {"oracle": "fail"},
        {"repeat": "varies"},
        {"clock": "changes"},
    ],
    ids=lambda runs: next(iter(runs)),
)
def test_a_check_that_passes_where_running_showed_a_fault_fails_the_case(
    monkeypatch: pytest.MonkeyPatch, runs: dict[str, str]
) -> None:
    checker(monkeypatch)
    with pytest.raises(AssertionError, match=next(iter(runs))):
        judge_verifier(with_runs("good-plain", **runs))


def test_a_check_that_fails_for_another_reason_than_running_showed_fails_the_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checker(monkeypatch, tamper="", malformed="got no reward at all (missing_reward)")
    judge_verifier(with_runs("leftover-server", malformed="error:missing_reward"))
    with pytest.raises(AssertionError, match="conflicting_rewards"):
        judge_verifier(with_runs("leftover-server", malformed="error:conflicting_rewards"))


def test_an_oracle_that_varies_may_pass_or_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    checker(monkeypatch)
    judge_verifier(with_runs("good-plain", oracle="varies"))


def test_a_cheat_must_do_what_it_did_unless_its_process_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    checker(monkeypatch, played="fail", tamper="")
    judge_verifier(CASES["leftover-server"])
    with pytest.raises(AssertionError, match="earns no reward here: cheat"):
        judge_verifier(CASES["path-shadowing"])
    checker(monkeypatch, tamper="")
    judge_verifier(CASES["path-shadowing"])


def test_what_was_refused_must_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    checker(monkeypatch, tamper="")
    with pytest.raises(AssertionError, match="cheat"):
        judge_verifier(with_runs("path-shadowing", cheat="fail"))


def test_a_kind_of_run_that_is_not_known_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    checker(monkeypatch)
    with pytest.raises(SkipCaseError, match="moonlight"):
        judge_verifier(with_runs("good-plain", moonlight="pass"))
    with pytest.raises(SkipCaseError, match="perhaps"):
        judge_verifier(with_runs("good-plain", noop="perhaps"))

"""The flags of an item alone: whatever the policy, in any stream of events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from registry.calibration.items import fold_items
from registry.derive.events import VERIFIER_CAUSES, OutcomeEvent, report_event
from registry.derive.flags import BROKEN_AFTER, Flags, after_outcome, after_report


def outcome(passed, *, cause="finished", agent="small"):
    return OutcomeEvent(1, 1, 1, passed, cause, 0, agent, 0.0)


def report(verdict="pass", *, complete=True, **checks):
    found = [{"check": name, "outcome": result} for name, result in checks.items()]
    return report_event(1, 0, {"verdict": verdict, "complete": complete, "checks": found}, 0.0)


KINDS = st.sampled_from(["pass", "fail", "verifier", "machinery"])


def run(kinds):
    flags, reasons = Flags(), []
    for kind in kinds:
        cause = {"verifier": "verifier_crash", "machinery": "host_lost"}.get(kind, "finished")
        flags, why = after_outcome(flags, outcome({"pass": True, "fail": False}.get(kind), cause=cause))
        reasons.append(why)
    return flags, reasons


@given(st.lists(KINDS, max_size=30))
def test_three_verifier_errors_with_no_grade_between_break_and_nothing_else_does(kinds):
    graded_or_failed = "".join({"pass": "g", "fail": "g", "verifier": "v", "machinery": ""}[kind] for kind in kinds)
    assert run(kinds)[0].broken == ("v" * BROKEN_AFTER in graded_or_failed)


@given(st.lists(KINDS, max_size=30))
def test_breaking_is_told_once_and_stays(kinds):
    flags, reasons = run(kinds)
    assert sum(bool(why) for why in reasons) == int(flags.broken)


@given(st.lists(st.sampled_from(["pass", "fail", "verifier"]), max_size=30))
def test_the_items_of_the_cases_count_alike(kinds):
    records = [("t", "v", "ungraded" if kind == "verifier" else kind) for kind in kinds]
    tally = fold_items(records).get(("t", "v"))
    flags = run(kinds)[0]
    assert tally is None or (tally.broken, tally.run_ungraded) == (flags.broken, flags.ungraded_run)


def test_only_the_verifiers_own_failures_are_its_causes():
    assert all(cause.startswith("verifier_") for cause in VERIFIER_CAUSES)
    assert "verifier_setup" not in VERIFIER_CAUSES


def test_an_oracle_that_fails_breaks_and_one_that_passes_does_not():
    assert after_outcome(Flags(), outcome(False, agent="oracle")) == (Flags(broken=True), "oracle_failed")
    assert after_outcome(Flags(), outcome(True, agent="oracle")) == (Flags(), "")
    assert after_outcome(Flags(), outcome(False)) == (Flags(), "")


def test_a_report_says_what_was_proven():
    assert after_report(Flags(), report(oracle="pass"))[0].verified == "checked"
    assert after_report(Flags(), report(complete=False))[0].verified == "partial"
    assert after_report(Flags(), report("error"))[0].verified == "partial"
    assert after_report(Flags(), report("fail", noop="fail")) == (Flags(verified="failed"), [])


def test_a_newer_report_takes_the_place_of_an_older_but_does_not_mend():
    broken, reasons = after_report(Flags(), report("fail", oracle="fail"))
    assert (broken.broken, reasons) == (True, ["oracle_failed"])
    assert after_report(broken, report(oracle="pass"))[0] == Flags(verified="checked", broken=True)


def test_an_incomplete_report_displaces_no_complete_passing_one_but_a_failing_one_does():
    checked, _ = after_report(Flags(), report(oracle="pass"))
    for incomplete in (report(complete=False), report("error"), report("incomplete", complete=False)):
        assert after_report(checked, incomplete)[0].verified == "checked"
    assert after_report(checked, report("fail", noop="fail"))[0].verified == "failed"


def test_a_complete_passing_report_wins_over_any_before_it():
    for before in (report(complete=False), report("fail", noop="fail")):
        flags, _ = after_report(Flags(), before)
        assert after_report(flags, report(oracle="pass"))[0].verified == "checked"


def test_flaky_follows_the_newest_report_that_decided_it():
    flaky, _ = after_report(Flags(), report("fail", repeat="fail"))
    assert flaky.flaky
    assert after_report(flaky, report(repeat="skipped"))[0].flaky
    assert after_report(flaky, report(repeat="pass")) == (Flags(verified="checked"), ["repeat_passed"])

"""All that is known of an item, and the trail of how it came to stand where it stands."""

from __future__ import annotations

import pytest

from envsdk.errors import UsageError
from registry.detail import find_items
from registry.estimates import posteriors_of


@pytest.fixture
def lived(registry, make_task, make_report, make_record):
    """A task that two policies tried, one of which came to pass it always, and that was checked half-way."""
    task = make_task("lived", tags=("shell", "quick"), family="lines")
    registry.push([task, make_task("other")])
    registry.append([make_record(task, n % 2 == 0, lineage="small") for n in range(4)])
    registry.push([], [make_report(task)])
    registry.append([make_record(task, True, lineage="large", version=3) for _ in range(13)])
    registry.append([make_record(task, None, lineage="large", cause="verifier_crash") for _ in range(3)])
    return task


def details(registry, reference):
    with registry.database.reading() as session:
        return find_items(session, reference)


def test_a_slug_a_digest_and_its_beginning_name_the_same_item(registry, lived):
    by_slug = details(registry, "lived")
    assert len(by_slug) == 1
    assert by_slug == details(registry, lived.digests.task) == details(registry, lived.digests.task[:8])


@pytest.mark.parametrize("reference", ["nobody", "live", "0" * 64, "", "%", "lived' OR 1=1"])
def test_a_name_of_nothing_is_an_error(registry, lived, reference):
    with pytest.raises(UsageError) as caught:
        details(registry, reference)
    assert caught.value.code == "unknown_task"


def test_an_edited_task_is_an_item_of_its_own_and_stands_first(registry, lived, make_task):
    registry.push([make_task("lived", verifier="0")])
    found = details(registry, "lived")
    assert [one.verifier_digest == lived.digests.verifier for one in found] == [False, True]


def test_each_policy_has_its_estimate(registry, lived):
    estimates = {one.policy: one for one in details(registry, "lived")[0].estimates}
    assert (estimates["small"].status, estimates["small"].n, estimates["small"].ungraded) == ("learnable", 4, 0)
    assert (estimates["large"].status, estimates["large"].n, estimates["large"].ungraded) == ("saturating", 13, 3)
    assert all(one.low <= one.mean <= one.high for one in estimates.values())


def test_the_trail_tells_every_change_with_its_reason_the_newest_first(registry, lived):
    item = details(registry, "lived")[0]
    assert item.broken
    told = [(one.policy, one.before, one.after, one.reason) for one in item.changes]
    assert told[0] == ("", "", "broken", "verifier_errors")
    assert ("", "draft", "checked", "report_checked") in told
    assert ("large", "calibrating", "saturating", "posterior") in told
    assert [one.position for one in item.changes] == sorted((one.position for one in item.changes), reverse=True)


def test_a_change_carries_the_evidence_that_made_it(registry, lived):
    change = next(one for one in details(registry, "lived")[0].changes if one.after == "saturating")
    assert set(change.evidence) == {"mean", "n", "k", "e_value", "cusum", "weight_version"}
    assert change.evidence["n"] == change.evidence["k"] >= 12


def test_reports_are_there_as_they_came(registry, lived, make_report):
    reports = details(registry, "lived")[0].reports
    assert [one["verdict"] for one in reports] == ["pass"]
    assert reports[0]["task_digest"] == lived.digests.task


def test_posteriors_of_nothing_are_nothing(registry, lived):
    with registry.database.reading() as session:
        assert posteriors_of(session, []) == {}
        assert posteriors_of(session, [("0" * 64, "1" * 64)]) == {}


def test_a_posterior_is_the_estimate_that_pages_show(registry, lived):
    pair = (lived.digests.task, lived.digests.verifier)
    for estimate in details(registry, "lived")[0].estimates:
        with registry.database.reading() as session:
            found = posteriors_of(session, [pair], lineage=estimate.policy)[pair]
        assert (found.mean, found.low, found.high, found.n) == (estimate.mean, estimate.low, estimate.high, estimate.n)
        assert found.alpha / (found.alpha + found.beta) == pytest.approx(found.mean)


def test_without_a_name_the_reference_policy_is_meant(registry, lived):
    pair = (lived.digests.task, lived.digests.verifier)
    with registry.database.reading() as session:
        assert posteriors_of(session, [pair]) == posteriors_of(session, [pair], lineage="small")

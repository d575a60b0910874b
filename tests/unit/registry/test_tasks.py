"""Pushing tasks and getting them back: identity is content, and nothing is published on hope."""

from __future__ import annotations

import os

import pytest

from envsdk.digest import tree_digest
from envsdk.errors import StoreError, UsageError
from envsdk.spec.load import load_task
from registry.tasks import place_task


def statuses(registry):
    return {item.slug: item.status for item in registry.query("").items}


def test_a_task_without_a_report_is_a_draft(registry, make_task):
    result = registry.push([make_task("a")])
    assert [(p.slug, p.new, p.verified) for p in result.pushed] == [("a", True, "none")]
    assert statuses(registry) == {"a": "draft"}


def test_a_complete_passing_report_makes_it_checked(registry, make_task, make_report):
    task = make_task("a")
    registry.push([task], [make_report(task)])
    assert statuses(registry) == {"a": "checked"}


def test_a_report_may_come_later(registry, make_task, make_report):
    task = make_task("a")
    registry.push([task])
    registry.push([], [make_report(task)])
    assert statuses(registry) == {"a": "checked"}


@pytest.mark.parametrize("fault", [{"complete": False}, {"noop": "fail"}, {"oracle": "fail"}])
def test_an_incomplete_or_failing_report_leaves_a_draft(registry, make_task, make_report, fault):
    task = make_task("a")
    registry.push([task], [make_report(task, **fault)])
    assert statuses(registry) == {"a": "draft"}


def test_a_failing_oracle_breaks_the_item(registry, make_task, make_report):
    task = make_task("a")
    registry.push([task], [make_report(task, oracle="fail")])
    assert [item.broken for item in registry.query("flag:broken").items] == [True]


def test_repeated_runs_that_disagree_make_it_flaky_until_a_report_says_otherwise(registry, make_task, make_report):
    task = make_task("a")
    registry.push([task], [make_report(task, repeat="fail")])
    assert registry.query("flag:flaky").total == 1
    registry.push([], [make_report(task, repeat="pass")])
    assert registry.query("flag:flaky").total == 0


def test_pushing_again_changes_nothing(registry, make_task, make_report):
    task = make_task("a", tags=("shell",))
    report = make_report(task)
    registry.push([task], [report])
    again = registry.push([task], [report])
    assert [p.new for p in again.pushed] == [False]
    assert registry.query("tag:shell").total == 1


@pytest.fixture
def twins(make_task):
    """A task with its solution, and the same under another name without it: equal digests of task and verifier."""
    root = make_task("good").root
    (root / "solution").mkdir()
    (root / "solution" / "solve.sh").write_text("#!/bin/sh\ntrue\n")
    good, bare = load_task(root), make_task("copy", instruction="Do good.\n")
    assert (good.digests.task, good.digests.verifier) == (bare.digests.task, bare.digests.verifier)
    return good, bare


def test_a_copy_under_another_name_is_said_to_be_the_same_task(registry, twins):
    pushed = registry.push(twins).pushed
    assert [(one.slug, one.new, one.known_as) for one in pushed] == [("good", True, ""), ("copy", False, "good")]


def test_an_incomplete_report_of_a_copy_leaves_the_proven_task_and_its_directory(
    registry, twins, make_report, tmp_path
):
    good, bare = twins
    registry.push([good], [make_report(good)])
    registry.push([bare], [make_report(bare, complete=False)])
    assert statuses(registry) == {"good": "checked"}
    fetched = registry.fetch(good.digests.task, good.digests.verifier, tmp_path / "out")
    assert fetched.digests.package == good.digests.package


def test_a_complete_report_wins_over_an_incomplete_one_that_was_made_later(registry, make_task, make_report):
    task = make_task("a")
    older, newer = (make_report(task, complete=whole).model_copy(update={"checked_at": at}) for whole, at in AGES)
    registry.push([task], [newer])
    assert statuses(registry) == {"a": "draft"}
    registry.push([task], [older])
    assert statuses(registry) == {"a": "checked"}


AGES = ((True, 1.0), (False, 2.0))
"""Whether a report is complete, and when it was made."""


def test_a_report_of_unknown_digests_is_rejected(registry, make_task, make_report):
    result = registry.push([], [make_report(make_task("a"))])
    assert [r.code for r in result.rejected] == ["unknown_digest"]


def test_files_that_no_longer_match_the_digests_are_refused(registry, make_task):
    task = make_task("a")
    (task.root / "instruction.md").write_text("Do something else.\n")
    result = registry.push([task])
    assert [r.code for r in result.rejected] == ["digest_mismatch"]
    assert registry.query("").total == 0


def test_one_bad_task_does_not_keep_the_others_out(registry, make_task):
    bad, good = make_task("bad"), make_task("good")
    (bad.root / "instruction.md").write_text("changed\n")
    assert [p.slug for p in registry.push([bad, good]).pushed] == ["good"]


def test_an_edit_of_the_verifier_is_another_item(registry, make_task):
    registry.push([make_task("a", verifier="1"), make_task("a", verifier="0")])
    assert registry.query("").total == 2


def test_what_is_fetched_is_the_same_directory(registry, make_task, tmp_path):
    root = make_task("a").root
    (root / "tests" / "run.sh").symlink_to("test.sh")
    task = load_task(root)
    registry.push([task])
    fetched = registry.fetch(task.digests.task, task.digests.verifier, tmp_path / "out")
    assert fetched.digests == task.digests
    assert tree_digest(fetched.root) == tree_digest(task.root)
    assert os.access(fetched.root / "tests" / "test.sh", os.X_OK)


def test_fetching_an_unknown_pair_says_so(registry, tmp_path):
    with pytest.raises(UsageError) as caught:
        registry.fetch("0" * 64, "1" * 64, tmp_path / "out")
    assert caught.value.code == "unknown_digest"


def test_fetching_over_something_is_refused(registry, make_task, tmp_path):
    task = make_task("a")
    registry.push([task])
    (tmp_path / "out").mkdir()
    with pytest.raises(UsageError, match="exists"):
        registry.fetch(task.digests.task, task.digests.verifier, tmp_path / "out")


def test_a_damaged_blob_is_an_error_and_leaves_no_folder(registry, make_task, tmp_path):
    task = make_task("a")
    registry.push([task])
    for blob in (tmp_path / "blobs").rglob("*"):
        if blob.is_file() and b"Do a." in blob.read_bytes():
            blob.write_bytes(b"Do evil.\n")
    with pytest.raises(StoreError) as caught:
        registry.fetch(task.digests.task, task.digests.verifier, tmp_path / "out")
    assert caught.value.code == "blob_corrupt"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([("../x", "100644", b"")], id="leaves-the-folder"),
        pytest.param([("/x", "100644", b"")], id="absolute"),
        pytest.param([("a/./b", "100644", b"")], id="not-normal"),
        pytest.param([("a", "120000", b"/etc"), ("a/passwd", "100644", b"")], id="through-a-link"),
        pytest.param([("a", "100644", b""), ("a", "100644", b"")], id="twice"),
        pytest.param([("x" * 300, "100644", b"")], id="too-long"),
        pytest.param([("a", "120000", b"\xff")], id="link-that-is-no-text"),
        pytest.param([("a", "120000", b"")], id="link-to-nothing"),
    ],
)
def test_a_path_that_would_leave_the_folder_is_refused(files, tmp_path):
    with pytest.raises(UsageError) as caught:
        place_task(files, tmp_path / "out")
    assert caught.value.code == "unsafe_path"
    assert [path.name for path in tmp_path.iterdir()] == []

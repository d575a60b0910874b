"""Task sets: immutable revisions, digests that depend on content alone, locks that notice an edit, only proven tasks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import SpecError, StoreError, UsageError
from registry.lock import read_lock, write_lock
from registry.revisions import SetEntry, delete_revision, normal_name, set_digest
from registry.sets import TaskSetRevision, compare

HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
ENTRIES = st.lists(st.builds(SetEntry, st.text(max_size=8), HEX, HEX), max_size=8)


@pytest.fixture
def tasks(registry, make_task, make_report):
    made = [make_task(name, tags=("t",)) for name in "abc"]
    registry.push(made, [make_report(task) for task in made[:2]])
    return made


def test_resolving_pins_the_proven_and_says_what_was_left_out(registry, tasks):
    revision = registry.resolve("tag:t sort:slug", name="set")
    assert [item.slug for item in revision.items] == ["a", "b"]
    assert [(item.slug, item.why) for item in revision.left_out] == [("c", "draft")]


def test_a_broken_task_enters_no_set(registry, tasks, make_record):
    registry.append([make_record(tasks[0], None, cause="verifier_crash") for _ in range(3)])
    revision = registry.resolve("tag:t sort:slug", name="set")
    assert [item.slug for item in revision.items] == ["b"]
    assert ("a", "broken") in [(item.slug, item.why) for item in revision.left_out]


def test_a_limit_counts_what_enters(registry, tasks):
    assert [item.slug for item in registry.resolve("tag:t sort:-slug limit:2").items] == ["b", "a"]


def test_resolving_again_without_a_change_is_the_same_revision(registry, tasks):
    first, again = registry.resolve("tag:t", name="set"), registry.resolve("tag:t", name="set")
    assert (first.revision, again.revision) == (1, 1)


def test_a_change_makes_a_new_revision_and_leaves_the_old(registry, tasks, make_report):
    first = registry.resolve("tag:t sort:slug", name="set")
    registry.push([], [make_report(tasks[2])])
    second = registry.resolve("tag:t sort:slug", name="set")
    assert (second.revision, registry.revision("set@1").items) == (2, first.items)
    assert registry.revision("set") == second
    assert compare(first, second).added == second.items[2:]
    assert compare(second, first).removed == second.items[2:]
    assert compare(first, second).kept == 2


def test_without_a_name_the_set_is_named_by_its_content(registry, tasks):
    revision = registry.resolve("tag:t")
    assert revision.name == f"q-{revision.digest[:12]}"
    assert registry.resolve("tag:t sort:slug").name == revision.name


def test_a_set_is_found_by_its_digest(registry, tasks):
    revision = registry.resolve("tag:t", name="set")
    assert registry.revision(revision.digest) == revision


def test_nothing_found_is_no_revision(registry, tasks):
    revision = registry.resolve("tag:none", name="set")
    assert (revision.revision, revision.items) == (0, ())
    with pytest.raises(UsageError):
        registry.revision("set")


@pytest.mark.parametrize("reference", ["nope", "set@7", "set@x", "set@-1", "0" * 64])
def test_what_is_not_there_is_named(registry, tasks, reference):
    registry.resolve("tag:t", name="set")
    with pytest.raises(UsageError) as caught:
        registry.revision(reference)
    assert caught.value.code == "unknown_set"


def test_a_deleted_revision_says_why(registry, tasks):
    registry.resolve("tag:t", name="set")
    with registry.database.writing() as session:
        delete_revision(session, "set@1", reason=" leaked ")
    with pytest.raises(UsageError, match="leaked") as caught:
        registry.revision("set@1")
    assert caught.value.code == "deleted_revision"


def test_deleting_gives_the_revision_before_back_and_no_number_twice(registry, tasks):
    registry.resolve("tag:t", name="set")
    registry.resolve("tag:t limit:1", name="set")
    with registry.database.writing() as session:
        delete_revision(session, "set@2", reason="leaked")
    assert registry.revision("set").revision == 1
    assert registry.resolve("tag:t limit:1", name="set").revision == 3


@pytest.mark.parametrize(
    ("reference", "reason", "code"),
    [
        ("set", "x", "no_number"),
        ("set@1", " ", "no_reason"),
        ("set@7", "x", "unknown_set"),
        ("no@1", "x", "unknown_set"),
    ],
)
def test_deleting_wants_one_revision_and_a_reason(registry, tasks, reference, reason, code):
    registry.resolve("tag:t", name="set")
    with pytest.raises(UsageError) as caught, registry.database.writing() as session:
        delete_revision(session, reference, reason=reason)
    assert caught.value.code == code
    assert registry.revision("set@1").revision == 1


@pytest.mark.parametrize(("given_name", "stored"), [("My Set", "my-set"), ("a_b", "a-b"), ("v1.2", "v1.2")])
def test_names_are_normalised(given_name, stored):
    assert normal_name(given_name) == stored


@pytest.mark.parametrize("name", ["", "-a", "a/b", "a@1", "x" * 101, "ä"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(UsageError) as caught:
        normal_name(name)
    assert caught.value.code == "bad_name"


@given(ENTRIES, st.randoms())
def test_a_sets_digest_does_not_depend_on_order_or_slugs(entries, rng):
    shuffled = [SetEntry("", entry.task_digest, entry.verifier_digest) for entry in entries]
    rng.shuffle(shuffled)
    assert set_digest(shuffled) == set_digest(entries)


@given(entries=ENTRIES)
def test_a_lock_reads_back_what_was_written(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("lock") / "set.lock"
    revision = TaskSetRevision("set", 3, set_digest(entries), tuple(entries), "tag:t")
    write_lock(revision, path)
    assert read_lock(path) == revision


def test_an_edited_lock_is_refused(tmp_path):
    path = tmp_path / "set.lock"
    entries = (SetEntry("a", "0" * 64, "1" * 64),)
    write_lock(TaskSetRevision("set", 1, set_digest(entries), entries), path)
    body = json.loads(path.read_text())
    body["items"][0]["task_digest"] = "2" * 64
    path.write_text(json.dumps(body))
    with pytest.raises(SpecError) as caught:
        read_lock(path)
    assert caught.value.code == "digest_mismatch"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 9, "set": "", "revision": 1, "digest": "", "query": "", "items": []}']
)
def test_what_is_no_lock_is_refused(tmp_path, text):
    (tmp_path / "set.lock").write_text(text)
    with pytest.raises(SpecError) as caught:
        read_lock(tmp_path / "set.lock")
    assert caught.value.code == "bad_lock"


def test_a_lock_that_is_not_there_is_a_store_error(tmp_path):
    with pytest.raises(StoreError) as caught:
        read_lock(tmp_path / "none.lock")
    assert caught.value.code == "lock_read_failed"


def test_a_query_for_a_deleted_revision_says_why_and_what_to_do(registry, tasks):
    registry.resolve("tag:t", name="set")
    with registry.database.writing() as session:
        delete_revision(session, "set@1", reason="leaked")
    with pytest.raises(UsageError, match="leaked") as caught:
        registry.query("set:set@1")
    assert (caught.value.code, caught.value.hint) == ("query_unknown_set", "pin the query again")

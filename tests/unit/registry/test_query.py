"""Queries against a database: the right rows, in order, page by page, whatever way the index is walked."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.query import QueryError, parse
from registry.query.page import run_query
from registry.query.saved import save_query
from registry.query.sql import compile_query


@pytest.fixture(scope="module")
def filled(module_registry, make_task, make_report, make_record):
    """For tests that only read."""
    return fill(module_registry, make_task, make_report, make_record)


@pytest.fixture
def fresh(registry, make_task, make_report, make_record):
    """For tests that write."""
    return fill(registry, make_task, make_report, make_record)


def fill(registry, make_task, make_report, make_record):
    """Nine tasks of three families: shell ones learnable, text ones too hard, the rest drafts."""
    shell = [make_task(f"shell-{n}", tags=("shell", "quick"), family="lines") for n in range(3)]
    text = [make_task(f"text-{n}", tags=("text",), family="words") for n in range(3)]
    rest = [make_task(f"rest-{n}", tags=("quick",), family="other", description="Needs Patience") for n in range(3)]
    registry.push(shell + text + rest, [make_report(task) for task in shell + text])
    registry.append([make_record(task, bool(n % 2)) for task in shell for n in range(4)])
    registry.append([make_record(task, False) for task in text for _ in range(12)])
    return registry


def slugs(registry, q, **options):
    return [item.slug for item in registry.query(q, **options).items]


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("tag:shell sort:slug", ["shell-0", "shell-1", "shell-2"]),
        ("tag:shell,text family:words sort:slug", ["text-0", "text-1", "text-2"]),
        ("tag:quick -tag:shell sort:slug", ["rest-0", "rest-1", "rest-2"]),
        ("family:lines tag:quick sort:-slug", ["shell-2", "shell-1", "shell-0"]),
        ("status:learnable sort:slug", ["shell-0", "shell-1", "shell-2"]),
        ("status:draft,too_hard -family:other sort:slug", ["text-0", "text-1", "text-2"]),
        ("-status:draft p:0.3.. sort:slug", ["shell-0", "shell-1", "shell-2"]),
        ("p:..0.1 tag:text sort:slug", ["text-0", "text-1", "text-2"]),
        ("-p:0.2..0.8 sort:slug", ["text-0", "text-1", "text-2"]),
        ("verifier:none sort:slug", ["rest-0", "rest-1", "rest-2"]),
        ("n:12.. sort:slug", ["text-0", "text-1", "text-2"]),
        ("patience sort:slug", ["rest-0", "rest-1", "rest-2"]),
        ("-patience family:other", []),
        ("tag:nobody-has-this", []),
        ("-tag:nobody-has-this tag:shell sort:slug", ["shell-0", "shell-1", "shell-2"]),
        ("tag:shell tag:text", []),
        ('"100%_"', []),
        ("atienc sort:slug", ["rest-0", "rest-1", "rest-2"]),
        ("Patience tag:quick family:other sort:-slug", ["rest-2", "rest-1", "rest-0"]),
        ("-shell- sort:slug status:too_hard", ["text-0", "text-1", "text-2"]),
        ("-patience sort:slug status:learnable", ["shell-0", "shell-1", "shell-2"]),
        ('"-1" sort:slug', ["rest-1", "shell-1", "text-1"]),
        ("he -te sort:slug status:learnable", ["shell-0", "shell-1", "shell-2"]),
        ("patience nowhere", []),
        ("flag:broken,flaky", []),
        ("policy:small status:learnable sort:slug limit:2", ["shell-0", "shell-1"]),
        ("policy:SM sort:slug limit:1", ["rest-0"]),
    ],
)
def test_what_is_found(filled, q, expected):
    assert slugs(filled, q) == expected


@pytest.mark.parametrize("key", ["learnability", "p", "n", "slug", "updated"])
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("size", [1, 2, 4, 50])
def test_pages_hold_every_item_once_in_the_order_of_one_page(filled, key, sign, size):
    whole = slugs(filled, f"sort:{sign}{key}")
    assert len(set(whole)) == 9
    pages, cursor = [], None
    while True:
        page = filled.query(f"sort:{sign}{key}", limit=size, cursor=cursor)
        pages.append([item.slug for item in page.items])
        cursor = page.next
        if cursor is None:
            break
    assert list(itertools.chain(*pages)) == whole
    assert all(len(page) == size for page in pages[:-1])


@pytest.mark.parametrize("walk", ["", "tag:quick ", "status:learnable ", "tag:shell status:learnable "])
def test_learnability_falls_along_the_default_order(filled, walk):
    found = [item.learnability for item in filled.query(walk).items]
    assert found == sorted(found, reverse=True)


def test_a_limit_holds_across_pages(filled):
    first = filled.query("sort:slug limit:3", limit=2)
    second = filled.query("sort:slug limit:3", limit=2, cursor=first.next)
    assert (len(first.items), len(second.items), second.next, first.total) == (2, 1, None, 3)


def test_a_page_that_ends_exactly_has_no_next(filled):
    assert filled.query("tag:shell", limit=3).next is None


def test_a_cursor_of_another_query_is_refused(filled):
    cursor = filled.query("sort:slug", limit=2).next
    with pytest.raises(QueryError) as caught:
        filled.query("sort:-slug", cursor=cursor)
    assert caught.value.code == "query_bad_cursor"


@pytest.mark.parametrize("cursor", ["", "!", "e30", "W10", "bnVsbA", "x" * 500])
def test_a_cursor_that_is_none_is_refused(filled, cursor):
    with pytest.raises(QueryError) as caught:
        filled.query("", cursor=cursor)
    assert caught.value.code == "query_bad_cursor"


def test_a_total_beyond_a_thousand_is_given_on_request_only(filled, monkeypatch):
    monkeypatch.setattr("registry.query.page.COUNT_TO", 5)
    page = filled.query("", limit=6)
    assert (page.total, page.more) == (None, True)
    page = filled.query("", limit=6, exact_total=True)
    assert (page.total, page.more) == (9, False)


def test_a_first_page_that_holds_everything_is_its_own_total(filled, monkeypatch):
    monkeypatch.setattr("registry.query.page.COUNT_TO", 5)
    assert filled.query("").total == 9
    assert filled.query("limit:7").total == 7
    assert filled.query("tag:nobody-has-this").total == 0


def test_an_unknown_policy_is_an_error_that_names_the_known(filled):
    with pytest.raises(QueryError) as caught:
        filled.query("tag:shell policy:smal2")
    assert (caught.value.code, caught.value.column) == ("query_unknown_policy", 18)
    assert "small" in caught.value.hint


def test_several_policies_of_one_beginning_are_an_error(fresh, make_record, tmp_path):
    item = fresh.query("tag:shell").items[0]
    task = fresh.fetch(item.task_digest, item.verifier_digest, tmp_path / "one")
    fresh.append([make_record(task, True, lineage="smaller")])
    assert fresh.query("policy:small").items
    with pytest.raises(QueryError):
        fresh.query("policy:sma")


def test_an_unknown_set_is_an_error(filled):
    with pytest.raises(QueryError) as caught:
        filled.query("tag:shell set:nope")
    assert (caught.value.code, caught.value.column) == ("query_unknown_set", 11)


def test_a_set_holds_what_it_was_resolved_to(fresh):
    fresh.resolve("tag:shell", name="lines")
    assert (
        slugs(fresh, "set:lines sort:slug")
        == slugs(fresh, "set:lines@1 sort:slug")
        == ["shell-0", "shell-1", "shell-2"]
    )
    assert slugs(fresh, "-set:lines -status:draft sort:slug") == ["text-0", "text-1", "text-2"]


def test_a_saved_query_stands_for_its_conditions(fresh):
    with fresh.database.writing() as session:
        save_query(session, "Easy Lines", "tag:shell sort:slug limit:2")
    assert slugs(fresh, "saved:easy-lines") == ["shell-0", "shell-1"]
    assert slugs(fresh, "saved:easy-lines sort:-slug limit:1") == ["shell-2"]


def test_a_saved_query_may_use_another_and_is_then_whole(fresh):
    with fresh.database.writing() as session:
        save_query(session, "a", "tag:shell")
        assert save_query(session, "b", "saved:a sort:slug").query == "tag:shell sort:slug"


def test_an_unknown_saved_query_is_an_error(filled):
    with pytest.raises(QueryError) as caught:
        filled.query("saved:nope")
    assert caught.value.code == "query_unknown_saved"


@given(st.text(alphabet="%_\\'\";-) ", min_size=1, max_size=10))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_no_value_becomes_sql(sqlite_registry, text):
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    for q in (f"tag:{quoted}", quoted, f"-family:{quoted}"):
        assert sqlite_registry.query(q).items == ()


def test_a_query_with_status_tag_range_and_sort_is_read_from_the_index(sqlite_registry, make_task):
    sqlite_registry.push([make_task("a", tags=("shell",))])
    with sqlite_registry.database.reading() as session:
        selection = compile_query(session, parse("status:learnable tag:shell p:0.2..0.8"))
        compiled = selection.page(51, None).compile(session.connection(), compile_kwargs={"literal_binds": True})
        plan = " ".join(str(row) for row in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}"))
    assert "COVERING INDEX ix_standing_tag_by_status" in plan
    assert "TEMP B-TREE" not in plan


def test_an_empty_registry_finds_nothing(registry):
    with registry.database.reading() as session:
        page = run_query(session, "")
    assert (page.items, page.total, page.next) == ((), 0, None)

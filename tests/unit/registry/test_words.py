"""Free words: the same items on both databases, whether the index tells or each text is read."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from registry.bulk import insert_rows
from registry.db import Item
from registry.derive.lineages import ensure_reference, fresh_standings
from registry.derive.rebuild import rebuild
from registry.integrity import look
from registry.query import parse
from registry.query.page import matching_ids
from registry.query.sql import compile_query
from registry.query.words import few_ids

TEXTS = (
    "sort the lines\nof a file",
    'say "yes" to 100%_ of it',
    "straße ist überall, naïve café",
    "日本語のテキスト 123",
    "a*b or c and not d near(e)",
    "path\\to\\file.txt it's; drop table",
    "lines lines lines",
    "x",
    "",
)


@pytest.fixture(scope="module")
def registry(module_registry):
    rows = [
        {
            "id": number,
            "task_digest": f"{number:064x}",
            "verifier_digest": "0" * 64,
            "slug": f"t{number}",
            "family": "",
            "tags": "[]",
            "spec": "{}",
            "search_text": words,
            "package": "0" * 64,
            "verified": "none",
            "broken": False,
            "flaky": False,
            "ungraded_run": 0,
            "created_at": 0.0,
        }
        for number, words in enumerate(TEXTS, start=1)
    ]
    with module_registry.database.writing() as session:
        insert_rows(session, Item.__table__, rows)
        fresh_standings(session, ensure_reference(session))
    return module_registry


def holding(word):
    return {number for number, words in enumerate(TEXTS, start=1) if word in words}


def found(registry, word):
    quoted = '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
    with registry.database.reading() as session:
        return set(matching_ids(session, parse(quoted), at_most=100))


pieces = st.sampled_from(TEXTS).flatmap(
    lambda words: st.tuples(st.integers(0, len(words)), st.integers(1, 9)).map(lambda at: words[at[0] : sum(at)])
)


@given(st.one_of(pieces, st.text(alphabet="ab%_*\"'\\ né日123", max_size=6)).filter(bool))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_a_word_finds_the_items_that_contain_it(registry, word):
    assert found(registry, word) == holding(word.lower())


@pytest.mark.parametrize("word", ["lines", "100%_", "straße", "日本語", "near(e)", "it's; drop", "\\file"])
def test_a_word_that_few_items_hold_is_looked_up(registry, word):
    with registry.database.reading() as session:
        assert set(few_ids(session, word) or ()) == holding(word)


@pytest.mark.parametrize("word", ["x", "li", "%_", "a*b", "\0abc"])
def test_a_word_without_three_letters_in_a_row_is_not(registry, word):
    with registry.database.reading() as session:
        assert few_ids(session, word) is None


def test_a_word_that_many_hold_finds_the_same_by_reading(registry, monkeypatch):
    monkeypatch.setattr("registry.query.words.FEW", 1)
    with registry.database.reading() as session:
        assert few_ids(session, "lines") is None
    assert found(registry, "lines") == holding("lines")


def test_a_rare_word_is_started_from_and_its_items_sorted(sqlite_registry, make_task):
    sqlite_registry.push([make_task("lines")])
    with sqlite_registry.database.reading() as session:
        selection = compile_query(session, parse("lines status:draft p:0.1.."))
        compiled = selection.page(51, None).compile(session.connection(), compile_kwargs={"literal_binds": True})
        plan = str(session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}").all())
    assert "ix_standing_item_id" in plan


@pytest.mark.parametrize("key", ["learnability", "-p", "slug", "-slug", "n", "updated"])
def test_pages_of_a_word_hold_every_item_once(registry, key):
    whole = [item.slug for item in registry.query(f"lines sort:{key}").items]
    first = registry.query(f"lines sort:{key}", limit=1)
    second = registry.query(f"lines sort:{key}", limit=1, cursor=first.next)
    assert [item.slug for item in (*first.items, *second.items)] == whole
    assert second.next is None


@pytest.mark.postgres
def test_words_are_found_on_a_server_without_the_extension(postgres_template, tmp_path):
    from registry.local import LocalRegistry

    with LocalRegistry(postgres_template(), blobs_url=str(tmp_path / "blobs")) as registry:
        with registry.database.writing() as session:
            session.execute(text("DROP EXTENSION pg_trgm CASCADE"))
        with registry.database.writing() as session:
            session.execute(select(Item.id))
            assert few_ids(session, "lines") == []


def test_a_lost_index_of_words_is_found_and_made_anew(sqlite_registry, make_task):
    sqlite_registry.push([make_task("lines"), make_task("words")])
    with sqlite_registry.database.writing() as session:
        session.execute(text("INSERT INTO item_words (item_words) VALUES ('delete-all')"))
    assert sqlite_registry.query("lines").total == 0
    with sqlite_registry.database.reading() as session:
        assert [one.code for one in look(session, sqlite_registry.blobs)] == ["words_missing"]
    with sqlite_registry.database.writing() as session:
        rebuild(session)
        assert list(look(session, sqlite_registry.blobs)) == []
    assert sqlite_registry.query("lines").total == 1

"""Bulk statements do what the ORM's do, on both databases and for any number of rows."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from registry.bulk import insert_rows, is_one_of, update_rows
from registry.db import Difficulty, Fit, Item, Lineage, Standing
from registry.derive.lineages import FRESH


@pytest.fixture
def session(registry):
    with registry.database.writing() as opened:
        yield opened


def items(numbers):
    return [
        {
            "id": number,
            "task_digest": f"{number:064x}",
            "verifier_digest": "0" * 64,
            "slug": f'it\'s "{number}" \\ %s ? :x',
            "family": "",
            "tags": "[]",
            "spec": "{}",
            "search_text": "line\nline\ttab",
            "package": "0" * 64,
            "verified": "none",
            "broken": False,
            "flaky": number % 2 == 0,
            "ungraded_run": 0,
            "created_at": number / 3,
        }
        for number in numbers
    ]


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 400])
def test_rows_come_back_as_they_went_in(session, count):
    rows = items(range(1, count + 1))
    insert_rows(session, Item.__table__, rows)
    found = session.execute(select(Item.id, Item.slug, Item.search_text, Item.flaky, Item.created_at).order_by(Item.id))
    assert [tuple(row) for row in found] == [
        (row["id"], row["slug"], row["search_text"], row["flaky"], row["created_at"]) for row in rows
    ]


def test_absent_values_stay_absent(session):
    insert_rows(session, Item.__table__, items([1]))
    session.add(Lineage(id=1, name="x", is_reference=True, created_at=0.0))
    session.flush()
    insert_rows(
        session, Standing.__table__, [FRESH | {"lineage_id": 1, "item_id": 1, "status": "draft", "updated_at": 0.0}]
    )
    assert session.scalar(select(Standing.weight_version)) is None


def test_an_update_touches_the_rows_it_names_and_no_others(session):
    insert_rows(session, Item.__table__, items([1, 2, 3]))
    update_rows(session, Item.__table__, [{"id": 2, "slug": "new", "broken": True}], where=("id",))
    found = session.execute(select(Item.id, Item.broken).order_by(Item.id))
    assert [tuple(row) for row in found] == [(1, False), (2, True), (3, False)]


def test_an_update_may_name_a_row_by_several_columns(session):
    insert_rows(session, Item.__table__, items([1, 2]))
    for number in (1, 2):
        session.add(Fit(id=number, position=0, summary={}, created_at=0.0))
    session.flush()
    rows = [{"fit_id": fit, "item_id": item, "b": 0.0, "se": 1.0} for fit in (1, 2) for item in (1, 2)]
    insert_rows(session, Difficulty.__table__, rows)
    update_rows(session, Difficulty.__table__, [{"fit_id": 2, "item_id": 1, "b": 5.0}], where=("fit_id", "item_id"))
    found = session.execute(select(Difficulty.fit_id, Difficulty.item_id).where(Difficulty.b == 5.0))
    assert [tuple(row) for row in found] == [(2, 1)]


@pytest.mark.parametrize("wanted", [[], [2], [1, 3, 99], list(range(1, 2_000))])
def test_numbers_are_found_in_lists_of_any_length(session, wanted):
    insert_rows(session, Item.__table__, items(range(1, 60)))
    found = session.scalars(select(Item.id).where(is_one_of(session, Item.id, wanted)).order_by(Item.id)).all()
    assert found == [number for number in range(1, 60) if number in set(wanted)]


def test_texts_with_quotes_and_marks_are_found_too(session):
    rows = items(range(1, 4))
    insert_rows(session, Item.__table__, rows)
    wanted = [rows[1]["slug"], "x'; DROP TABLE item; --"]
    assert session.scalars(select(Item.id).where(is_one_of(session, Item.slug, wanted))).all() == [2]

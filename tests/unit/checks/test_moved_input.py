"""Inputs with less in them."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.checks.attacks.moved import shortened


@given(st.text(min_size=1))
def test_what_is_left_is_never_more(text: str) -> None:
    for other in shortened(text.encode()):
        assert len("".join(other.decode().split())) <= len("".join(text.split())) + 2  # JSON may be written with spaces


@pytest.mark.parametrize(
    ("content", "first"),
    [
        (b"a\nb\nc\n", b"a\nb\n"),
        (b"a\nb\n", b"a\n"),
        (b"red blue red\n", b"red blue\n"),
        (b"[1, 2, 3]\n", b"[1, 2]"),
        (b'{"a": 1, "b": 2}', b'{"a": 1}'),
    ],
)
def test_the_last_part_goes_first(content: bytes, first: bytes) -> None:
    assert next(iter(shortened(content))) == first


@pytest.mark.parametrize("content", [b"", b" \n", b"word\n", b"\xff\x00\x01", b"SQLite format 3\0 and no more"])
def test_of_what_has_no_parts_nothing_is_taken(content: bytes) -> None:
    assert list(shortened(content)) == []


def test_a_table_of_several_lines_keeps_its_head_and_a_row() -> None:
    assert list(shortened(b"name,n\na,1\nb,2\nc,3\n"))[1] == b"name,n\na,1\n"


def test_a_list_that_is_all_gone_is_still_json() -> None:
    assert json.loads(next(iter(shortened(b'["one"]')))) == []


def test_a_data_base_loses_rows_and_stays_one() -> None:
    base = sqlite3.connect(":memory:")
    base.execute("create table sales(item, qty)")
    base.executemany("insert into sales values (?, ?)", [("pen", 3), ("cup", 9), ("hat", 2)])
    base.commit()
    left = []
    for other in shortened(base.serialize()):
        again = sqlite3.connect(":memory:")
        again.deserialize(other)
        left.append([item for (item,) in again.execute("select item from sales")])
        again.close()
    base.close()
    assert left == [["pen", "cup"], []]

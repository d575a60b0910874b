"""Wrong data bases."""

from __future__ import annotations

import sqlite3

import pytest

from envsdk.checks.mutation import bases


def base(**tables: list[int]) -> bytes:
    made = sqlite3.connect(":memory:")
    for name, rows in tables.items():
        made.execute(f"create table {name}(n)")
        made.executemany(f"insert into {name} values (?)", [(row,) for row in rows])
    made.commit()
    content = made.serialize()
    made.close()
    return content


def rows(content: bytes, table: str) -> list[int]:
    opened = sqlite3.connect(":memory:")
    opened.deserialize(content)
    found = [n for (n,) in opened.execute(f"select n from {table}")]
    opened.close()
    return found


def test_a_table_loses_its_rows_and_its_last_one() -> None:
    made = list(bases.mutants("/a.db", base(t=[1, 2]), None))
    assert [rows(mutant.files["/a.db"], "t") for mutant in made] == [[], [1]]


def test_tables_that_were_there_before_are_left_alone() -> None:
    made = bases.mutants("/a.db", base(t=[1, 2], new=[7]), base(t=[1, 2]))
    assert {mutant.name for mutant in made} == {
        "/a.db: its table new without any rows",
        "/a.db: its table new without its last row",
    }


@pytest.mark.parametrize("content", [b"", b"text", b"SQLite format 3\0 and no more"])
def test_what_is_no_data_base_is_left_alone(content: bytes) -> None:
    assert list(bases.mutants("/a.db", content, None)) == []

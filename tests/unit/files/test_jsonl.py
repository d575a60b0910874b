"""`envsdk.files.jsonl`: rows survive writing, killing, appending and reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.errors import StoreError
from envsdk.files.jsonl import append_row, iter_rows, read_rows, write_rows

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6
)
ROWS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jsonl")


@given(rows=st.lists(ROWS, max_size=5))
@settings(max_examples=60, deadline=None)
def test_rows_come_back_equal_and_each_takes_one_newline(folder: Path, rows: list[dict[str, Any]]) -> None:
    path = folder / "rows.jsonl"
    write_rows(path, rows)
    assert read_rows(path).rows == rows
    assert path.read_bytes().count(b"\n") == len(rows)


@given(rows=st.lists(ROWS, min_size=1, max_size=4), data=st.data())
@settings(max_examples=80, deadline=None)
def test_a_file_cut_anywhere_costs_at_most_its_last_row(
    folder: Path, rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    path = folder / "cut.jsonl"
    write_rows(path, rows)
    whole = path.read_bytes()
    cut = data.draw(st.integers(min_value=0, max_value=len(whole)))
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")
    kept = read_rows(path)
    assert kept.rows[:complete] == rows[:complete]
    assert len(kept.rows) - complete in {0, 1}
    append_row(path, {"next": 1}, fsync=False)
    assert read_rows(path).rows == [*kept.rows, {"next": 1}]


def test_appending_to_a_missing_file_creates_it_and_its_folder(tmp_path: Path) -> None:
    append_row(tmp_path / "new" / "rows.jsonl", {"a": 1})
    assert read_rows(tmp_path / "new" / "rows.jsonl").rows == [{"a": 1}]


def test_a_torn_tail_longer_than_one_block_is_removed_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"t": "' + b"x" * 200_000)
    append_row(path, {"b": 2})
    assert path.read_bytes() == b'{"a": 1}\n{"b":2}\n'


def test_a_half_surrogate_pair_becomes_the_replacement_character_and_a_split_pair_its_character(tmp_path: Path) -> None:
    write_rows(tmp_path / "r", [{"half": "a\ud83db", "split": "\ud83d\ude00", "\udc00": 1}])
    assert read_rows(tmp_path / "r").rows == [{"half": "a\ufffdb", "split": "\U0001f600", "\ufffd": 1}]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused_and_the_old_file_stays(tmp_path: Path, value: float) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [{"old": 1}])
    with pytest.raises(StoreError) as refused:
        write_rows(path, [{"good": 1}, {"deep": [{"x": value}]}])
    assert refused.value.code == "non_finite"
    with pytest.raises(StoreError):
        append_row(path, {"x": value})
    assert read_rows(path).rows == [{"old": 1}]
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object()])
def test_a_value_without_json_form_is_refused_by_name(tmp_path: Path, value: object) -> None:
    with pytest.raises(StoreError) as refused:
        write_rows(tmp_path / "rows.jsonl", [{"x": value}])
    assert refused.value.code == "unwritable_row"


@pytest.mark.parametrize(
    "line",
    [b"[1]", b"1", b"{} {}", b'{"a": NaN}', b"{", b"\xff{}", b"\xef\xbb\xbf{}", b"[" * 100_000],
    ids=lambda line: repr(line[:10]),
)
def test_a_damaged_row_in_the_middle_is_named_by_its_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"{}\n\n" + line + b"\n{}\n")
    with pytest.raises(StoreError) as refused:
        read_rows(path)
    assert refused.value.code == "corrupt_row"
    assert refused.value.where == f"{path}:3"
    with pytest.raises(StoreError):
        list(iter_rows(path))


def test_iterating_gives_the_rows_of_reading_without_the_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2}\n{"a"')
    assert list(iter_rows(path)) == read_rows(path).rows == [{"a": 1}, {"a": 2}]
    assert read_rows(path).torn


def test_every_line_is_strict_json_to_any_reader(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [{"t": "a\u2028b\x85c\rd"}])
    assert json.loads(path.read_bytes().split(b"\n")[0]) == {"t": "a\u2028b\x85c\rd"}

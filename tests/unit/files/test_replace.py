"""Replacing a file: whole or not at all, and nothing left beside it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsdk.files.replace import replacing, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def broken_off(path: Path) -> None:
    with replacing(path) as draft:
        draft.write_text("half of the n")
        raise KeyboardInterrupt


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_the_last_text_is_read_back_to_the_byte(tmp_path: Path, texts: list[str]) -> None:
    path = tmp_path / "new" / "file.txt"
    for text in texts:
        write_whole(path, text)
    assert path.read_bytes() == texts[-1].encode()
    assert names(path.parent) == ["file.txt"]


def test_a_failure_on_the_way_keeps_what_was_there_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_whole(path, "old")
    with pytest.raises(KeyboardInterrupt):
        broken_off(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_until_the_block_ends_a_reader_sees_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_whole(path, "old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_the_mode_of_the_draft_is_the_files(tmp_path: Path) -> None:
    with replacing(tmp_path / "program") as draft:
        draft.write_text("#!/bin/sh\n")
        draft.chmod(0o755)
    assert (tmp_path / "program").stat().st_mode & 0o777 == 0o755


def test_a_folder_that_cannot_hold_it_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken" / "file.txt", "x")


def test_writers_at_once_leave_the_whole_of_one_text(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    texts = [letter * 20_000 for letter in "abcdefgh"]
    threads = [threading.Thread(target=write_whole, args=(path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert names(tmp_path) == ["file.txt"]

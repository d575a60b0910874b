"""Shared memory of killed engines: what was noted goes, whatever else there is stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest

from trainer.engines import segments
from trainer.engines.segments import NOTES, note_segments, remove_noted

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def segment() -> Iterator[SharedMemory]:
    """A segment by a name of chance, which this process has mapped."""
    made = SharedMemory(create=True, size=4096)
    yield made
    made.close()
    if (SHARED_MEMORY / made.name).exists():
        made.unlink()


def test_what_a_process_has_mapped_is_noted_with_its_inode(tmp_path: Path, segment: SharedMemory) -> None:
    note_segments(tmp_path, [os.getpid()])
    inode = (SHARED_MEMORY / segment.name).stat().st_ino
    assert f"{segment.name} {inode}" in (tmp_path / NOTES).read_text().splitlines()


def test_what_was_noted_is_removed(tmp_path: Path) -> None:
    (tmp_path / "psm_1a2b3c4d").touch()
    (tmp_path / NOTES).write_text(f"psm_1a2b3c4d {(tmp_path / 'psm_1a2b3c4d').stat().st_ino}\n")
    assert remove_noted(tmp_path, root=tmp_path) == [tmp_path / "psm_1a2b3c4d"]
    assert not (tmp_path / "psm_1a2b3c4d").exists()


def test_another_segment_by_the_same_name_stays(tmp_path: Path) -> None:
    (tmp_path / "psm_1a2b3c4d").touch()
    inode = (tmp_path / "psm_1a2b3c4d").stat().st_ino
    (tmp_path / NOTES).write_text(f"psm_1a2b3c4d {inode + 1}\n")
    assert remove_noted(tmp_path, root=tmp_path) == []
    assert (tmp_path / "psm_1a2b3c4d").exists()


@pytest.mark.parametrize("line", ["../outside 1", "psm_1a2b3c4d", "psm_1a2b3c4d x", "psm_gone 17", "", "\x00"])
def test_a_note_that_is_cut_off_or_of_something_else_removes_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / "psm_1a2b3c4d").touch()
    (tmp_path / NOTES).write_text(line)
    assert remove_noted(tmp_path, root=tmp_path) == []
    assert (tmp_path / "psm_1a2b3c4d").exists()


def test_a_folder_without_notes_and_a_process_that_is_gone_are_nothing(tmp_path: Path) -> None:
    assert remove_noted(tmp_path, root=tmp_path) == []
    note_segments(tmp_path, [2**22 + 1])
    assert (tmp_path / NOTES).read_text() == ""


def test_only_segments_named_by_chance_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "7f0000000000-7f0000001000 rw-s 00000000 00:1b {} /dev/shm/{}\n"
    maps = line.format(1, "psm_1a2b3c4d") + line.format(2, "envsdk-weights-1-x.safetensors") + line.format(3, "sem.x")
    monkeypatch.setattr(segments.Path, "read_text", lambda *_, **__: maps)
    assert segments._mapped(1) == {("1", "psm_1a2b3c4d")}

"""What the system refuses names its object, also where the system itself does not: a full disk has no file's name."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from envsdk.files.jsonl import append_row, write_rows
from envsdk.files.replace import write_whole
from envsdk.refusal import naming, refusal

FULL = Path("/dev/full")


def test_a_path_is_given_where_there_is_none_and_kept_where_there_is_one() -> None:
    with pytest.raises(OSError, match="full") as nameless, naming(Path("mine")):
        raise OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="full") as named, naming(Path("mine")):
        raise OSError(errno.ENOSPC, "full", "theirs")
    assert (refusal(nameless.value).where, refusal(named.value).where) == ("mine", "theirs")


def test_a_row_that_finds_no_room_names_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsdk.files.jsonl._mend_tail", lambda file: b"")  # /dev/full has no end to look at
    with pytest.raises(OSError, match="No space") as caught:
        append_row(FULL, {"a": 1})
    assert (refusal(caught.value).code, refusal(caught.value).where) == ("disk_full", str(FULL))


@pytest.mark.parametrize("write", [lambda path: write_whole(path, "x"), lambda path: write_rows(path, [{"a": 1}])])
def test_a_file_that_finds_no_room_is_named_and_leaves_the_old_one(
    tmp_path: Path, write: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        write(tmp_path / "f")
    assert refusal(caught.value).where == str(tmp_path / "f")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("f", "old")]

"""A folder for a while: gone at its end, swept after a kill, never taken from whoever uses it."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from envsdk.files.scratch import remove_abandoned, scratch

HOLDER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from envsdk.files.scratch import scratch
with scratch("work") as folder:
    (folder / "half").write_text("written")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _holder(root: Path) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", HOLDER, str(root)]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_folder_is_there_for_a_while_and_then_gone(root: Path) -> None:
    with scratch("work") as folder:
        (folder / "file").write_text("something")
        assert "work" in folder.name
    assert list(root.iterdir()) == []


def test_an_error_removes_it_too(root: Path) -> None:
    with pytest.raises(RuntimeError), scratch("work"):
        raise RuntimeError
    assert list(root.iterdir()) == []


def test_folders_that_may_not_be_written_to_go_and_what_links_point_at_stays(root: Path) -> None:
    outside = root / "outside"
    outside.mkdir(mode=0o555)
    with scratch("work") as folder:
        (folder / "task" / "inner").mkdir(parents=True)
        (folder / "task" / "link").symlink_to(outside)
        (folder / "task").chmod(0o555)
    assert list(root.iterdir()) == [outside]
    assert outside.stat().st_mode & 0o777 == 0o555


def test_what_is_in_use_here_or_in_another_process_is_never_removed(root: Path) -> None:
    with _holder(root) as other, scratch("work") as mine:
        theirs = Path(other.stdout.readline().strip())
        assert remove_abandoned(root) == []
        assert mine.is_dir()
        assert (theirs / "half").is_file()
        other.stdin.close()


def test_what_a_killed_process_left_is_removed(root: Path) -> None:
    with _holder(root) as other:
        theirs = Path(other.stdout.readline().strip())
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert theirs.is_dir()
        assert remove_abandoned(root) == [theirs]
    assert list(root.iterdir()) == []


def test_the_first_of_a_process_sweeps_what_others_left(root: Path) -> None:
    (root / "envsdk-scratch-eval-abandoned").mkdir()
    with scratch("work") as folder:
        assert list(root.iterdir()) == [folder]


def test_nothing_but_such_folders_is_touched(root: Path) -> None:
    kept = [root / name for name in ("envsdk-eval-old", "envsdk-engine-1-x", "else")]
    for folder in kept:
        folder.mkdir()
    (root / "envsdk-scratch-file").write_text("no folder")
    (root / "envsdk-scratch-link").symlink_to(kept[0])
    assert remove_abandoned(root) == []
    assert sorted(path.name for path in root.iterdir()) == sorted(
        [*(folder.name for folder in kept), "envsdk-scratch-file", "envsdk-scratch-link"]
    )


def test_a_folder_that_was_swept_while_it_was_made_is_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, swept = tempfile.mkdtemp, []

    def swept_at_once(**options: object) -> str:
        name = make(**options)
        if not swept:
            swept.extend(remove_abandoned(root))
        return name

    monkeypatch.setattr(tempfile, "mkdtemp", swept_at_once)
    with scratch("work") as folder:
        assert swept
        assert folder.is_dir()
        assert folder not in swept

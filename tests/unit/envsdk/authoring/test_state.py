"""The read handle on an end state: follows links as the sandbox would, and never out of the state."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.authoring import runner, state
from envsdk.authoring.state import FolderState, State


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("no")
    app = tmp_path / "box" / "app"
    app.mkdir(parents=True)
    (app / "a").write_bytes(b"1")
    return tmp_path / "box"


def test_files_are_read_by_their_path_in_the_sandbox(root: Path) -> None:
    handle = FolderState(root)
    assert (handle.read("/app/a"), handle.exists("/app/a"), handle.list("/app")) == (b"1", True, ["a"])


@pytest.mark.parametrize("target", ["a", "/app/a", "../app/a", "../../../../app/a", "./a"])
def test_links_are_followed_inside(root: Path, target: str) -> None:
    (root / "app" / "l").symlink_to(target)
    assert FolderState(root).read("/app/l") == b"1"


@pytest.mark.parametrize("target", ["../../secret", "/secret", "/../secret", "l"])
def test_no_link_leads_out(root: Path, target: str) -> None:
    (root / "app" / "l").symlink_to(target)
    assert not FolderState(root).exists("/app/l")
    with pytest.raises(FileNotFoundError):
        FolderState(root).read("/app/l")


def test_a_path_cannot_leave_either(root: Path) -> None:
    assert not FolderState(root).exists("/../secret")


def test_missing_things_are_file_not_found(root: Path) -> None:
    handle = FolderState(root)
    for ask in (handle.read, handle.list):
        with pytest.raises(FileNotFoundError):
            ask("/app/none")
    with pytest.raises(FileNotFoundError):
        handle.read("/app")


def test_large_files_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_READ_BYTES", 0)
    with pytest.raises(ValueError, match="larger"):
        FolderState(root).read("/app/a")


def test_both_handles_keep_the_protocol() -> None:
    assert isinstance(runner.Handle(), State)
    assert isinstance(FolderState(Path("/")), State)

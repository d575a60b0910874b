"""The read handle on an end state: follows links as the sandbox would, and never out of the state."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.authoring import state
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


def test_the_handle_keeps_the_protocol() -> None:
    assert isinstance(FolderState(Path("/")), State)


def test_permission_bits_are_those_of_what_a_link_leads_to(root: Path) -> None:
    (root / "app" / "a").chmod(0o750)
    (root / "app" / "l").symlink_to("a")
    assert (FolderState(root).mode("/app/a"), FolderState(root).mode("/app/l")) == (0o750, 0o750)
    with pytest.raises(FileNotFoundError):
        FolderState(root).mode("/app/none")


@pytest.fixture
def grove(root: Path) -> Path:
    for path in ("app/b.py", "app/sub/c.py", "app/sub/deep/d.py", "app/.hidden", "app/x[1].txt", "app/sub/b1"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    return root


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/app/*.py", ["/app/b.py"]),
        ("/app/**/*.py", ["/app/b.py", "/app/sub/c.py", "/app/sub/deep/d.py"]),
        ("/**/d.py", ["/app/sub/deep/d.py"]),
        ("/app/sub/?*", ["/app/sub/b1", "/app/sub/c.py", "/app/sub/deep"]),
        ("/app/sub/[a-c]?", ["/app/sub/b1"]),
        ("/app/sub/[!b]*", ["/app/sub/c.py", "/app/sub/deep"]),
        ("/app/.h*", ["/app/.hidden"]),
        ("/app/x[[]1].txt", ["/app/x[1].txt"]),
        ("/app/b.py", ["/app/b.py"]),
        ("/app//./b.py", ["/app/b.py"]),
        ("/app/sub", ["/app/sub"]),
        ("/app/none", []),
        ("/none/*", []),
        ("/app/*/*/*/*", []),
    ],
)
def test_a_pattern_finds_files_and_folders(grove: Path, pattern: str, found: list[str]) -> None:
    assert FolderState(grove).glob(pattern) == found


def test_a_pattern_follows_no_link_out_and_none_in_a_circle(grove: Path) -> None:
    (grove / "app" / "up").symlink_to("..")
    (grove / "app" / "out").symlink_to("/../../secret")
    (grove / "app" / "dangling").symlink_to("nothing")
    assert FolderState(grove).glob("/app/**/b.py") == ["/app/b.py"]
    assert FolderState(grove).glob("/app/up/app/*.py") == ["/app/up/app/b.py"]
    assert FolderState(grove).glob("/app/[od]*") == []


def test_a_pattern_over_too_much_is_refused(grove: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_MATCHES", 3)
    with pytest.raises(ValueError, match="more than 3"):
        FolderState(grove).glob("/**/*")

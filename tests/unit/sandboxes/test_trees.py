import contextlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import SandboxError
from envsdk.sandboxes.trees import entries, pack, unpack, unpack_file

HEAD = struct.Struct("<cIIQ")


def entry(kind: bytes, name: bytes, content: bytes = b"", mode: int = 0o644) -> bytes:
    return HEAD.pack(kind, mode, len(name), len(content)) + name + content


END = entry(b"e", b"")


def listing(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.stat().st_mode & 0o100, path.read_bytes())
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "a" / "empty").mkdir(parents=True)
    (root / "a" / "b.bin").write_bytes(bytes(range(256)))
    (root / "run").write_text("x")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("a/b.bin")
    (root / "folder-link").symlink_to("a")
    (root / "dangling").symlink_to("/no/where")
    return root


def test_a_tree_comes_back_as_it_was(tree: Path, tmp_path: Path) -> None:
    unpack(pack(tree), tmp_path / "back")
    assert listing(tmp_path / "back") == listing(tree)


def test_a_tree_comes_back_from_a_file_as_it_was(tree: Path, tmp_path: Path) -> None:
    with (tmp_path / "spool").open("w+b") as spool:
        spool.write(pack(tree))
        unpack_file(spool, tmp_path / "back")
    assert listing(tmp_path / "back") == listing(tree)


def test_an_empty_file_holds_no_tree(tmp_path: Path) -> None:
    with (tmp_path / "spool").open("w+b") as spool, pytest.raises(SandboxError) as caught:
        unpack_file(spool, tmp_path / "back")
    assert caught.value.code == "bad_tree"


def test_a_single_file_comes_back_under_the_targets_name(tree: Path, tmp_path: Path) -> None:
    unpack(pack(tree / "run"), tmp_path / "deep" / "name")
    assert (tmp_path / "deep" / "name").read_text() == "x"


def test_only_what_is_asked_for_is_packed(tree: Path) -> None:
    names = [name for kind, _, name, _ in entries(pack(tree, keep=lambda path: path == "run")) if kind == "f"]
    assert names == ["run"]


def test_fifos_and_sockets_are_left_out(tree: Path) -> None:
    os.mkfifo(tree / "fifo")
    assert "fifo" not in [name for _, _, name, _ in entries(pack(tree))]


@pytest.mark.parametrize("name", [b"../out", b"/abs", b"a/../../out", b".."])
def test_paths_that_leave_the_folder_are_refused(name: bytes, tmp_path: Path) -> None:
    with pytest.raises(SandboxError) as caught:
        unpack(entry(b"f", name, b"x") + END, tmp_path / "t")
    assert caught.value.code == "bad_tree"
    assert not (tmp_path / "out").exists()


def test_a_link_of_the_stream_is_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    stream = entry(b"l", b"way", os.fsencode(outside)) + entry(b"f", b"way/evil", b"x") + END
    with pytest.raises(SandboxError):
        unpack(stream, tmp_path / "t")
    assert list(outside.iterdir()) == []


def test_a_file_replaces_a_link_of_the_same_name(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    unpack(entry(b"l", b"x", os.fsencode(victim)) + entry(b"f", b"x", b"new") + END, tmp_path / "t")
    assert victim.read_text() == "keep"
    assert (tmp_path / "t" / "x").read_bytes() == b"new"


@given(st.binary(max_size=60))
def test_garbage_is_refused_and_never_hangs(data: bytes) -> None:
    with contextlib.suppress(SandboxError):
        assert sum(len(content) for *_, content in entries(data)) <= len(data)


@given(st.integers(1, 200))
def test_a_cut_stream_is_refused(cut: int) -> None:
    whole = entry(b"d", b"folder", mode=0o755) + entry(b"f", b"folder/file", b"y" * 150) + END
    with pytest.raises(SandboxError):
        list(entries(whole[:-cut]))


def test_files_the_sandbox_made_unreadable_can_be_read_here(tmp_path: Path) -> None:
    unpack(entry(b"f", b"x", b"data", mode=0) + END, tmp_path / "t")
    assert (tmp_path / "t" / "x").stat().st_mode & 0o600 == 0o600

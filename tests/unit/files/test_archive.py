"""`envsdk.files.archive`: whole or not at all, and never outside."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.conformance.archive_builder import build_archive
from envsdk.errors import StoreError, UsageError
from envsdk.files.archive import unpack
from envsdk.files.members import Limits, clean_path

FORMATS = ["tar", "tar.gz", "zip"]


def make(folder: Path, form: str, *members: dict[str, Any]) -> Path:
    path = folder / f"made.{form}"
    build_archive(form, members, path)
    return path


def code_of(folder: Path, form: str, *members: dict[str, Any], **limits: int) -> str:
    """The code an archive is refused with, having checked that nothing of it stayed."""
    archive = make(folder, form, *members)
    before = set(folder.rglob("*"))
    with pytest.raises(UsageError) as refused:
        unpack(archive, folder / "out" / "tree", limits=Limits(**limits))
    assert set(folder.rglob("*")) - before <= {folder / "out"}
    return refused.value.code


@pytest.mark.parametrize("form", FORMATS)
def test_files_links_folders_and_run_bits_arrive(tmp_path: Path, form: str) -> None:
    archive = make(
        tmp_path,
        form,
        {"path": "./", "type": "dir"},
        {"path": "./bin/run", "text": "#!/bin/sh\n", "mode": "4755"},
        {"path": "ü b", "hex": "00ff0d0a"},
        {"path": "l", "type": "symlink", "target": "bin/run"},
        {"path": "void/", "type": "dir"},
    )
    assert unpack(archive, tmp_path / "out") == ["bin/run", "l", "ü b"]
    assert (tmp_path / "out" / "ü b").read_bytes() == b"\x00\xff\r\n"
    assert (tmp_path / "out" / "l").read_text() == "#!/bin/sh\n"
    assert (tmp_path / "out" / "bin" / "run").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "out" / "void").is_dir()


def test_a_hard_link_to_an_earlier_file_arrives(tmp_path: Path) -> None:
    archive = make(tmp_path, "tar", {"path": "a", "text": "1"}, {"path": "b", "type": "hardlink", "target": "./a"})
    assert unpack(archive, tmp_path / "out") == ["a", "b"]
    assert (tmp_path / "out" / "b").read_text() == "1"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("absolute_path", {"path": "/x"}),
        ("absolute_path", {"path": "C:/x"}),
        ("absolute_path", {"path": "c:x"}),
        ("bad_path", {"path": "a//b"}),
        ("bad_path", {"path": "a/./b"}),
        ("bad_path", {"path": "a\\b"}),
        ("bad_path", {"path": "a\0b"}),
        ("bad_path", {"path": "././a"}),
        ("path_traversal", {"path": ".."}),
        ("path_traversal", {"path": "a/.."}),
        ("path_traversal", {"path": "./../a"}),
        ("bad_path", {"path": "..//x"}),
        ("special_file", {"path": "p", "type": "fifo"}),
        ("special_file", {"path": "b", "type": "block"}),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
def test_a_bad_member_refuses_the_whole_archive(tmp_path: Path, form: str, code: str, path: dict[str, str]) -> None:
    assert code_of(tmp_path, form, {"path": "good", "text": "1"}, path) == code


def test_a_tar_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    assert code_of(tmp_path, "tar", {"path": "good"}, {"path_hex": "61ff"}) == "non_utf8_path"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("code", "members"),
    [
        ("type_conflict", ["f", "f/x"]),
        ("type_conflict", ["d/x", "d"]),
        ("type_conflict", ["d/", "d"]),
        ("type_conflict", ["d", "d/"]),
        ("duplicate_member", ["a", "b", "./a"]),
        ("duplicate_member", ["d/", "d/"]),
    ],
)
def test_two_members_of_one_name_are_refused(tmp_path: Path, form: str, code: str, members: list[str]) -> None:
    entries = [{"path": path, "type": "dir" if path.endswith("/") else "file"} for path in members]
    assert code_of(tmp_path, form, *entries) == code


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("code", "links"),
    [
        ("symlink_escape", {"l": "/etc"}),
        ("symlink_escape", {"here": ".", "l": "here/../x"}),
        ("link_cycle", {"a": "b", "b": "a"}),
        ("link_cycle", {"a": "a/x"}),
        ("symlink_escape", {"a": "a", "z": ".."}),
    ],
)
def test_links_that_leave_or_never_arrive_are_refused(
    tmp_path: Path, form: str, code: str, links: dict[str, str]
) -> None:
    assert code_of(tmp_path, form, *({"path": p, "type": "symlink", "target": t} for p, t in links.items())) == code


@pytest.mark.parametrize("target", ["missing", "l2", "../d", "later", "/a"])
def test_a_hard_link_to_anything_but_an_earlier_file_is_refused(tmp_path: Path, target: str) -> None:
    members = [
        {"path": "a", "text": "1"},
        {"path": "d", "type": "dir"},
        {"path": "l2", "type": "symlink", "target": "a"},
        {"path": "h", "type": "hardlink", "target": target},
        {"path": "later", "text": "2"},
    ]
    assert code_of(tmp_path, "tar", *members) == "hardlink_escape"


@pytest.mark.parametrize("form", FORMATS)
def test_the_byte_limit_counts_the_sum_and_includes_its_end(tmp_path: Path, form: str) -> None:
    members = [{"path": str(n), "fill": {"unit": "0", "times": 100}} for n in range(3)]
    assert code_of(tmp_path, form, *members, max_bytes=299) == "expansion_limit"
    assert unpack(make(tmp_path, form, *members), tmp_path / "fits", limits=Limits(max_bytes=300)) == ["0", "1", "2"]


@pytest.mark.parametrize("form", FORMATS)
def test_too_many_members_are_refused(tmp_path: Path, form: str) -> None:
    members = [{"path": str(n)} for n in range(4)]
    assert code_of(tmp_path, form, *members, max_members=3) == "too_many_members"


def test_a_zip_that_claims_less_than_it_holds_is_refused(tmp_path: Path) -> None:
    archive = make(tmp_path, "zip", {"path": "a", "fill": {"unit": "0", "times": 5000}, "size": 3})
    with pytest.raises(UsageError) as refused:
        unpack(archive, tmp_path / "out", limits=Limits(max_bytes=1000))
    assert refused.value.code in {"bad_archive", "expansion_limit"}
    assert not (tmp_path / "out").exists()


def test_an_old_zip_name_in_raw_bytes_that_are_no_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.zip"
    with zipfile.ZipFile(path, "w") as box:
        box.writestr("axb", "1")
    path.write_bytes(path.read_bytes().replace(b"axb", b"a\xffb"))
    with pytest.raises(UsageError) as refused:
        unpack(path, tmp_path / "out")
    assert refused.value.code == "non_utf8_path"


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04rubbish", b"\x1f\x8b\x08rubbish", b"x" * 2048])
def test_what_is_no_archive_is_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        unpack(path, tmp_path / "out")
    assert refused.value.code == "bad_archive"


def test_a_cut_archive_leaves_nothing(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("a")
        info.size = 100_000
        tar.addfile(info, io.BytesIO(bytes(i % 251 for i in range(100_000))))
    path = tmp_path / "cut.tgz"
    path.write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    with pytest.raises(UsageError) as refused:
        unpack(path, tmp_path / "out")
    assert refused.value.code == "bad_archive"
    assert [entry.name for entry in tmp_path.iterdir()] == ["cut.tgz"]


def test_a_destination_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep")
    with pytest.raises(StoreError):
        unpack(make(tmp_path, "tar", {"path": "a", "text": "1"}), tmp_path / "out")
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["mine"]


@given(st.text(alphabet=st.sampled_from("ab./\\:\0é"), max_size=8))
@settings(max_examples=300, deadline=None)
def test_a_clean_path_never_leaves_the_root(raw: str) -> None:
    try:
        path = clean_path(raw)
    except UsageError:
        return
    if path is not None:
        assert not path.startswith("/")
        assert all(part not in {"", ".", ".."} for part in path.split("/"))

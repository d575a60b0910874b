"""Wrong archives: right names, and less in them."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from envsdk.checks.mutation import archives, texts
from envsdk.checks.mutation.wording import read_wording

MEMBERS = {"a.md": b"one", "b.md": b"two"}


def zipped() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in MEMBERS.items():
            archive.writestr(name, content)
    return made.getvalue()


def tarred() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in MEMBERS.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def members(content: bytes) -> dict[str, bytes]:
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        files = [(member.name, archive.extractfile(member)) for member in archive]
        return {name: file.read() for name, file in files if file is not None}


@pytest.mark.parametrize("content", [zipped(), tarred(), gzip.compress(tarred())], ids=["zip", "tar", "tar.gz"])
def test_members_are_emptied_and_the_last_goes(content: bytes) -> None:
    made = [mutant.files["/a"] for mutant in archives.mutants("/a", content)]
    assert [members(other) for other in made] == [{"a.md": b"", "b.md": b""}, {"a.md": b"one"}]
    assert all(other[:2] == content[:2] for other in made)


def test_a_compressed_text_is_another() -> None:
    (mutant,) = archives.mutants("/a.gz", gzip.compress(b"right"))
    assert gzip.decompress(mutant.files["/a.gz"]) == b"x\n"


@pytest.mark.parametrize("content", [b"", b"text", b"PK and no more", b"\xff\x00"])
def test_what_is_no_archive_is_left_alone(content: bytes) -> None:
    assert list(archives.mutants("/a", content)) == []


def test_bytes_that_are_no_text_get_no_line_too_many() -> None:
    made = texts.mutants("/a", tarred(), read_wording("Do it."), ())
    assert {mutant.name for mutant in made} == {"/a: the constant 0", "/a: the constant 1", "/a: the constant x"}


def test_a_packed_archive_is_not_unpacked_past_the_bound() -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for number in range(9):
            info = tarfile.TarInfo(str(number))
            info.size = archives.MAX_BYTES // 8
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    assert archives._tarred(made.getvalue()) is None

"""Texts inside archives and databases: found, bounded, and nothing raised for what does not open."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.checks import unpacking
from envsdk.checks.unpacking import MAX_BYTES, outer, texts_in

FILES = {"tests/test.sh": b"#!/bin/sh\necho 1\n", "key.txt": "Málaga\n".encode(), "picture.png": b"\x89PNG\0"}
TEXTS = {"/opt/x!tests/test.sh": "#!/bin/sh\necho 1\n", "/opt/x!key.txt": "Málaga\n"}


def tarred(mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in FILES.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
    return out.getvalue()


def database() -> bytes:
    base = sqlite3.connect(":memory:")
    base.execute('create table "exp""ected" (name text, value integer)')
    base.execute('insert into "exp""ected" values (?, ?)', ("total", 173))
    base.commit()
    return base.serialize()


@pytest.mark.parametrize("data", [tarred("w"), tarred("w:gz"), tarred("w:bz2"), tarred("w:xz"), zipped()])
def test_members_of_an_archive_that_are_texts_are_found(data: bytes) -> None:
    assert texts_in("/opt/x", data) == TEXTS


@pytest.mark.parametrize(
    "data", [gzip.compress(b"173\n"), bz2.compress(b"173\n"), lzma.compress(b"173\n")], ids=["gzip", "bzip2", "xz"]
)
def test_a_compressed_file_is_read(data: bytes) -> None:
    assert texts_in("/opt/x", data) == {"/opt/x!content": "173\n"}


def test_a_database_is_read_by_row_with_the_names_of_its_columns() -> None:
    assert texts_in("/app/d.db", database()) == {'/app/d.db!exp"ected': 'exp"ected name: total, value: 173'}


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"SQLite format 3\0"]),
)
def test_what_does_not_open_holds_nothing(rest: bytes, magic: bytes) -> None:
    texts_in("/opt/x", magic + rest)


@pytest.mark.parametrize("data", [zipped(), tarred("w:gz"), database()])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_an_archive_that_is_cut_short_raises_nothing(data: bytes, kept: float) -> None:
    assert set(texts_in("/opt/x", data[: int(len(data) * kept)])) <= {*TEXTS, '/opt/x!exp"ected', "/opt/x!content"}


def test_a_bomb_is_not_unpacked() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"0" * (MAX_BYTES + 1))
    assert texts_in("/opt/x", out.getvalue()) == {}
    [text] = texts_in("/opt/x", gzip.compress(b"0" * (50 * MAX_BYTES))).values()
    assert len(text) == MAX_BYTES


def test_members_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MAX_MEMBERS", 1)
    assert len(texts_in("/opt/x", tarred("w"))) == 1


@pytest.mark.parametrize(("path", "file"), [("/opt/x!a/b", "/opt/x"), ("/opt/x", "/opt/x")])
def test_a_path_into_an_archive_leads_to_the_archive(path: str, file: str) -> None:
    assert outer(path) == file

"""The blob store: what is put comes back, once, whole, from a folder and from any fsspec file system."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk import home
from envsdk.errors import StoreError
from registry.blobs import open_blobs


@pytest.fixture(params=["folder", "memory"])
def blobs(request, tmp_path):
    return open_blobs(str(tmp_path / "blobs") if request.param == "folder" else f"memory://{tmp_path}")


def files(root):
    return sorted(path.name for path in Path(root).rglob("*") if path.is_file())


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 4_000])
def test_what_is_put_comes_back_under_its_sha256(blobs, data):
    digest = blobs.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert blobs.get(digest) == data


@given(data=st.binary(max_size=200))
def test_putting_again_changes_nothing(tmp_path_factory, data):
    store = open_blobs(str(tmp_path_factory.mktemp("blobs")))
    assert store.put(data) == store.put(data)
    assert len(files(store.root)) == 1


def test_what_was_never_put_is_missing(blobs):
    assert not blobs.holds("0" * 64)
    with pytest.raises(StoreError) as caught:
        blobs.get("0" * 64)
    assert caught.value.code == "blob_missing"


@pytest.mark.parametrize("digest", ["", "x", "0" * 63, "../" + "0" * 61, "A" * 64])
def test_what_is_no_digest_never_becomes_a_path(blobs, digest):
    with pytest.raises(StoreError) as caught:
        blobs.get(digest)
    assert caught.value.code == "bad_digest"


def test_a_damaged_blob_is_an_error_and_never_other_bytes(tmp_path):
    store = open_blobs(str(tmp_path))
    digest = store.put(b"right")
    (tmp_path / digest[:2] / digest).write_bytes(b"wrong")
    with pytest.raises(StoreError) as caught:
        store.get(digest)
    assert caught.value.code == "blob_corrupt"


@pytest.mark.parametrize("damage", [b"wrong", b"", b"right and more"])
def test_putting_a_damaged_blob_again_repairs_it(tmp_path, damage):
    store = open_blobs(str(tmp_path))
    digest = store.put(b"right")
    (tmp_path / digest[:2] / digest).write_bytes(damage)
    assert store.put(b"right") == digest
    assert store.get(digest) == b"right"


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError) as caught:
        open_blobs(str(tmp_path / "file")).put(b"x")
    assert caught.value.code == "blob_write_failed"


def test_many_at_once_leave_one_blob_and_no_parts(tmp_path):
    store = open_blobs(str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(store.put, [b"same"] * 40))) == 1
    assert files(tmp_path) == [hashlib.sha256(b"same").hexdigest()]


def test_blobs_lie_beside_an_embedded_database_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("ENVSDK_BLOBS", raising=False)
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))
    assert open_blobs(database_url=f"sqlite:///{tmp_path}/r.sqlite").root == str(tmp_path / "blobs")
    assert open_blobs(database_url="postgresql+psycopg://x/y").root == str(home.blobs_dir())
    monkeypatch.setenv("ENVSDK_BLOBS", str(tmp_path / "elsewhere"))
    assert open_blobs(database_url="sqlite:///x/r.sqlite").root == str(tmp_path / "elsewhere")

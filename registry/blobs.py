"""Task files by content: each blob lies under its sha256, in a folder by default, in an object store by URL (fsspec).

Writing is atomic and idempotent; reading checks the hash, so a damaged blob is an error and never a different task.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from envsdk import home
from envsdk.errors import StoreError

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class BlobStore:
    """Blobs under one root of one fsspec file system."""

    fs: Any
    root: str

    def put(self, data: bytes) -> str:
        """Store ``data`` and return its sha256; nothing is written where it is there already and whole."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            if self.fs.exists(path) and self.fs.cat_file(path) == data:  # a damaged one is stored anew
                return digest
            self.fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            if "file" in self.fs.protocol:
                part = f"{path}.{uuid4().hex}.part"
                Path(part).write_bytes(data)
                os.replace(part, path)  # noqa: PTH105 - atomic where Path.rename is not promised to be
            else:
                self.fs.pipe_file(path, data)  # object stores put whole objects
        except OSError as error:
            raise StoreError(
                f"cannot store blob {digest[:12]}: {error}",
                code="blob_write_failed",
                hint="see to free space and permissions",
                where=path,
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of a blob.

        Raises:
            StoreError: missing (``blob_missing``) or damaged (``blob_corrupt``).
        """
        path = self._path(digest)
        try:
            data: bytes = self.fs.cat_file(path)
        except FileNotFoundError as error:
            raise StoreError(
                f"blob {digest[:12]} is missing", code="blob_missing", hint="push the task again", where=path
            ) from error
        except OSError as error:
            raise StoreError(
                f"cannot read blob {digest[:12]}: {error}",
                code="blob_read_failed",
                hint="see to the disk or the object store",
                where=path,
            ) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(
                f"blob {digest[:12]} is damaged", code="blob_corrupt", hint="push the task again", where=path
            )
        return data

    def holds(self, digest: str) -> bool:
        """Whether a blob is there; its bytes are not read."""
        return bool(self.fs.exists(self._path(digest)))

    def _path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise StoreError(f"{digest!r} is no sha256", code="bad_digest", hint="a digest is 64 digits of 0-9 and a-f")
        return f"{self.root}/{digest[:2]}/{digest}"


def open_blobs(url: str | None = None, *, database_url: str = "") -> BlobStore:
    """The blob store at ``url`` (any fsspec URL), else ``ENVSDK_BLOBS``, else ``blobs/`` beside an embedded database.

    A server's database has no "beside": its blobs lie in the data folder unless a URL says otherwise.
    """
    import fsspec

    target = url or os.environ.get("ENVSDK_BLOBS", "").strip()
    if not target:
        path = database_url.removeprefix("sqlite:///") if database_url.startswith("sqlite:///") else ""
        target = str(Path(path).absolute().parent / "blobs") if path else str(home.blobs_dir())
    fs, root = fsspec.core.url_to_fs(target)
    return BlobStore(fs, str(root).rstrip("/"))

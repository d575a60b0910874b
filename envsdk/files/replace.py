"""One file in place of another in one step: a reader sees the old one or the new one, never half of one.

Promised: what is put in place is on the disk; where writing fails or is interrupted, what was there stays and no draft
is left (a kill may leave one, hidden, which nobody reads); writers at the same time do not meet in one draft, and the
last one wins. Not promised: that a folder is replaced so (`envsdk.spec.contents.new_directory` makes those).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envsdk.refusal import naming


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft's path, beside ``path``, to write to; it takes the place of ``path`` when the block has ended well.

    Missing folders are made. Raises `OSError` where the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with naming(path):
            yield draft
            with draft.open("rb") as written:
                os.fsync(written.fileno())
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Make ``text``, as UTF-8 with its newlines as they are, the content of a file. Raises as `replacing` does."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="")

"""Files of a directory as values, to be written elsewhere: bytes, run bit, link target, and nothing of the machine."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envsdk.errors import StoreError, UsageError
from envsdk.spec.directory import keep_in_task
from envsdk.tree import list_tree


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file, or one symbolic link where ``link`` is its target text."""

    data: bytes = b""
    executable: bool = False
    link: str | None = None


def read_contents(root: Path) -> dict[str, FileContent]:
    """Every file and link of a task directory, by relative path, in memory.

    Raises:
        SpecError: the tree holds what it may not.
        StoreError: something cannot be read.
    """
    contents = {}
    for entry in list_tree(root, keep=keep_in_task):
        if entry.target is not None:
            contents[entry.path] = FileContent(link=entry.target)
            continue
        try:
            data = (root / entry.path).read_bytes()
        except OSError as error:
            raise StoreError(
                f"cannot read {entry.path}: {error.strerror}", code="unreadable_file", where=str(root)
            ) from error
        contents[entry.path] = FileContent(data, entry.mode == "100755")
    return contents


@contextmanager
def new_directory(dest: Path) -> Iterator[Path]:
    """A folder beside ``dest`` to write into, renamed to it on success and removed on any failure.

    Raises:
        UsageError: ``dest`` exists and is not an empty directory (code ``destination_exists``).
        StoreError: it cannot be made.
    """
    if dest.is_symlink() or (dest.exists() and not (dest.is_dir() and not any(dest.iterdir()))):
        raise UsageError(
            "exists already", code="destination_exists", where=str(dest), hint="give another path, or remove it"
        )
    draft = dest.parent / f".{dest.name}.{secrets.token_hex(4)}"
    try:
        dest.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir()
        draft.chmod(0o755)
        yield draft
        draft.rename(dest)
    except OSError as error:
        raise StoreError(f"cannot write: {error.strerror or error}", code="unwritable", where=str(dest)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_contents(root: Path, contents: Mapping[str, FileContent]) -> None:
    """Write files and links under an existing folder, with the same modes under every umask.

    Raises:
        UsageError: a path is absolute, empty, or has a ``..`` (code ``bad_path``).
        OSError: something cannot be written.
    """
    for path, content in contents.items():
        if path.startswith("/") or any(part in {"", ".", ".."} for part in path.split("/")):
            raise UsageError(f"{path!r} is no path inside a task", code="bad_path", hint="use relative paths with /")
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if content.link is not None:
            place.symlink_to(content.link)
            continue
        place.write_bytes(content.data)
        place.chmod(0o755 if content.executable else 0o644)

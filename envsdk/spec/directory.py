"""A task directory as it lies on disk: its listing, and its small files read safely.

Only regular files of the listing are read, up to a bound; a link, however named, is not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from envsdk.errors import SpecError, StoreError
from envsdk.spec.problems import Problem
from envsdk.tree import TreeEntry, scan_tree, why_refused

MAX_TREE_BYTES = 1 << 30
MAX_TREE_ENTRIES = 100_000
MAX_TEXT_BYTES = 8 << 20


@dataclass(frozen=True)
class TaskDirectory:
    """``entries`` are every file and link, sorted; ``problems`` what the tree may not hold."""

    root: Path
    entries: Sequence[TreeEntry]
    problems: Sequence[Problem]

    @cached_property
    def by_path(self) -> dict[str, TreeEntry]:
        """Entries by relative path."""
        return {entry.path: entry for entry in self.entries}

    def is_file(self, path: str) -> bool:
        """There is a regular file at ``path``."""
        entry = self.by_path.get(path)
        return entry is not None and entry.target is None

    def has_folder(self, path: str) -> bool:
        """There is a file or link somewhere under ``path``."""
        return any(entry.path.startswith(f"{path}/") for entry in self.entries)

    def read_text(self, path: str) -> tuple[str | None, list[Problem]]:
        """A UTF-8 file without its byte order mark, and what is wrong with it; `None` where there is no such text.

        Raises:
            StoreError: the file cannot be read.
        """
        if not self.is_file(path):
            return None, []
        if self.by_path[path].size > MAX_TEXT_BYTES:
            limit = f"{MAX_TEXT_BYTES >> 20} MiB"
            return None, [Problem(code="file_too_large", file=path, message=f"larger than {limit}", hint="shorten it")]
        try:
            data = (self.root / path).read_bytes()
        except OSError as error:
            raise StoreError(
                f"cannot read {path}: {error.strerror}", code="unreadable_file", where=str(self.root)
            ) from error
        problems = []
        if data.startswith(b"\xef\xbb\xbf"):
            problems.append(
                Problem(
                    code="byte_order_mark",
                    file=path,
                    message="starts with a byte order mark",
                    hint="save it as UTF-8 without BOM",
                    severity="error" if path == "task.toml" else "warning",
                )
            )
        try:
            return data.decode("utf-8-sig"), problems
        except UnicodeDecodeError as error:
            message = f"is not UTF-8 (byte {error.start})"
            return None, [*problems, Problem(code="not_utf8", file=path, message=message, hint="save it as UTF-8")]


def keep_in_task(path: str) -> bool:
    """What belongs to a task directory: all but version control's own folder at its top."""
    return path != ".git/"


def open_directory(root: Path) -> TaskDirectory:
    """List a task directory.

    Raises:
        SpecError: there is no directory, or it has no ``task.toml`` (codes ``no_such_path``, ``not_a_task``).
        StoreError: it cannot be listed.
    """
    if not root.is_dir():
        code, what = ("not_a_task", "is a file") if root.exists() else ("no_such_path", "does not exist")
        raise SpecError(
            f"{what}, not a task directory", code=code, where=str(root), hint="give a folder with a task.toml"
        )
    entries, findings = scan_tree(root, keep=keep_in_task)
    problems = [Problem(code=f.code, file=f.path, message=why_refused(f.code), hint="remove it") for f in findings]
    if not any(entry.path == "task.toml" for entry in entries):
        raise SpecError("has no task.toml", code="not_a_task", where=str(root), hint="give a folder with a task.toml")
    problems += _check_size(entries)
    return TaskDirectory(root, entries, problems)


def _check_size(entries: Sequence[TreeEntry]) -> list[Problem]:
    total = sum(entry.size for entry in entries)
    if total <= MAX_TREE_BYTES and len(entries) <= MAX_TREE_ENTRIES:
        return []
    largest = max(entries, key=lambda entry: entry.size)
    return [
        Problem(
            code="tree_too_large",
            file=largest.path,
            message=f"{len(entries)} files of {total:,} bytes in all, {largest.size:,} in this one",
            hint=f"keep a task within {MAX_TREE_ENTRIES:,} files and {MAX_TREE_BYTES >> 30} GiB; fetch data at build",
        )
    ]

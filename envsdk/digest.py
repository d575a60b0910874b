"""Names of content: the same bytes, run bits and link targets have the same digest on every machine and Python.

A tree's digest is sha256 over the RFC 8785 canonical JSON of its rows ``[path, mode, sha256]``, sorted by path as
UTF-8 bytes. A task has three digests. The *task digest* covers what the agent meets; the *verifier digest* what judges
it; the *package digest* the whole directory, oracle and author's wrong answers included. Task and verifier digests
cover tables of ``task.toml`` beside rows, as the canonical JSON of ``{"files": rows, "tables": tables}``.

Files are hashed as streams: memory does not grow with their size.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import rfc8785

from envsdk.errors import StoreError
from envsdk.spec.model import Digests
from envsdk.tree import TreeEntry, keep_all, list_tree

Row = list[str]
_EXACT_INT = 2**53 - 1


def canonical(value: Any) -> bytes:
    """RFC 8785 canonical JSON. TOML's dates and integers beyond 53 bits, which JSON has not, become tagged strings."""
    return rfc8785.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return f"toml:{type(value).__name__}:{value.isoformat()}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT_INT:
        return f"toml:int:{value}"
    return value


def sha256_hex(data: bytes) -> str:
    """64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest_rows(rows: list[Row]) -> str:
    """Digest of rows that are already sorted by path."""
    return sha256_hex(rfc8785.dumps(rows))


def tree_rows(root: Path, entries: Iterable[TreeEntry]) -> list[Row]:
    """One row for each entry, in its order; reads every file once.

    Raises:
        StoreError: a file cannot be read.
    """
    return [[entry.path, entry.mode, _content_hash(root, entry)] for entry in entries]


def _content_hash(root: Path, entry: TreeEntry) -> str:
    if entry.target is not None:
        return sha256_hex(entry.target.encode())
    try:
        with open(f"{root}/{entry.path}", "rb") as stream:  # noqa: PTH123 - measurably faster than Path over thousands of files
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(
            f"cannot read {entry.path}: {error.strerror}",
            code="unreadable_file",
            where=str(root),
            hint="give this user the right to read every file of it",
        ) from error


def tree_digest(root: Path, *, keep: Callable[[str], bool] = keep_all) -> str:
    """Digest of every file and link under ``root`` that ``keep`` accepts (see `envsdk.tree.list_tree`).

    Raises:
        SpecError: the tree holds what it may not (`envsdk.tree.REFUSALS`).
        StoreError: something cannot be read.
    """
    return digest_rows(tree_rows(root, list_tree(root, keep=keep)))


def task_digests(rows: list[Row], *, task_tables: Mapping[str, Any], verifier_tables: Mapping[str, Any]) -> Digests:
    """The three digests of a task directory.

    Args:
        rows: every row of the directory, sorted.
        task_tables: the parts of ``task.toml`` that the agent meets.
        verifier_tables: the parts that judge it.
    """
    sides: dict[str, list[Row]] = {"task": [], "verifier": [], "": []}
    for row in rows:
        sides[side_of(row[0])].append(row)
    return Digests(
        task=sha256_hex(canonical({"files": sides["task"], "tables": task_tables})),
        verifier=sha256_hex(canonical({"files": sides["verifier"], "tables": verifier_tables})),
        package=digest_rows(rows),
    )


def side_of(path: str) -> str:
    """Which digest beside the package's covers a file of a task directory: ``task``, ``verifier``, or neither (empty).

    ``task.toml`` is in neither: its tables are.
    """
    top, _, rest = path.partition("/")
    if top == "steps":
        inner = rest.partition("/")[2].partition("/")[0]
        return {"tests": "verifier", "solution": ""}.get(inner, "task")
    if path == "instruction.md" or (top == "environment" and rest):
        return "task"
    return "verifier" if top == "tests" and rest else ""

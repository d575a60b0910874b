"""Judges of tree digests: ``digest``, ``same_digest``, ``other_digest`` and ``reject_tree`` of ``text_and_files``."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import rfc8785

from envsdk.conformance.entries import content_of, name_of
from envsdk.conformance.fields import known_fields
from envsdk.conformance.run import Case, SkipCaseError
from envsdk.digest import digest_rows, tree_digest, tree_rows
from envsdk.errors import EnvsdkError
from envsdk.tree import list_tree

_KNOWN = {"path", "path_hex", "text", "hex", "fill", "mode", "link", "hard_link", "dir", "fifo", "socket"}


def judge_digest(case: Case) -> None:
    """The tree's digest, and its canonical JSON where the case gives it."""
    known_fields(case, {"tree"}, {"digest", "canonical"})
    with tempfile.TemporaryDirectory() as folder:
        root = build_tree(Path(folder), case.body["input"]["tree"])
        rows = tree_rows(root, list_tree(root))
    expected = case.body["expected"]
    if "canonical" in expected:
        found = rfc8785.dumps(rows).decode()
        assert found == expected["canonical"], f"canonical JSON is {found}"
    found = digest_rows(rows)
    assert found == expected["digest"], f"digest is {found}, not {expected['digest']}"


def judge_pair(case: Case) -> None:
    """Two trees have one digest, or two."""
    known_fields(case, {"tree", "tree2"}, {"same"})
    digests = []
    for name in ("tree", "tree2"):
        with tempfile.TemporaryDirectory() as folder:
            digests.append(tree_digest(build_tree(Path(folder), case.body["input"][name])))
    default = case.body["kind"] == "same_digest"
    same = case.body.get("expected", {}).get("same", default)
    assert (digests[0] == digests[1]) == same, f"digests are {digests[0]} and {digests[1]}"


def judge_refusal(case: Case) -> None:
    """The tree is refused with the case's code."""
    known_fields(case, {"tree"}, {"error"})
    wanted = case.body["expected"]["error"]
    with tempfile.TemporaryDirectory() as folder:
        root = build_tree(Path(folder), case.body["input"]["tree"])
        try:
            found = f"accepted with digest {tree_digest(root)}"
        except EnvsdkError as error:
            found = error.code
    assert found == wanted, f"{found}, not refused as {wanted}"


DIGEST_KINDS: Mapping[str, Callable[[Case], None]] = {
    "digest": judge_digest,
    "same_digest": judge_pair,
    "other_digest": judge_pair,
    "reject_tree": judge_refusal,
}


def build_tree(root: Path, entries: Sequence[Mapping[str, Any]]) -> Path:
    """Create the tree that a case describes, in its order, under the existing folder ``root``.

    Raises:
        SkipCaseError: an entry has a field that is not known here, or this file system cannot hold it.
    """
    for entry in entries:
        _create(root, entry)
    return root


def _create(root: Path, entry: Mapping[str, Any]) -> None:
    unknown = set(entry) - _KNOWN
    if unknown:
        raise SkipCaseError(f"unknown tree entry fields {sorted(unknown)}")
    name = name_of(entry)
    path = root / os.fsdecode(name)
    try:
        (path if entry.get("dir") else path.parent).mkdir(parents=True, exist_ok=True)
        _fill(root, path, entry)
    except OSError as error:
        raise SkipCaseError(f"this file system cannot hold {name!r}: {error.strerror}") from error
    if "mode" in entry or not {"dir", "link", "hard_link", "socket"} & set(entry):
        path.chmod(int(str(entry.get("mode", "644")), 8))


def _fill(root: Path, path: Path, entry: Mapping[str, Any]) -> None:
    if entry.get("dir"):
        return
    if "link" in entry:
        path.symlink_to(str(entry["link"]))
    elif "hard_link" in entry:
        path.hardlink_to(root / str(entry["hard_link"]))
    elif entry.get("fifo"):
        os.mkfifo(path)
    elif entry.get("socket"):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    else:
        path.write_bytes(content_of(entry))

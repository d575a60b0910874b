"""The read handle on a carried state answers as the file system itself would, links and all, as far as the state goes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from envsdk.authoring.state import FolderState

names = st.sampled_from(["a", "b", "c"])
entries = st.lists(
    st.tuples(
        st.lists(names, min_size=1, max_size=3).map(tuple),
        st.sampled_from(["file", "folder", "link"]),
        st.lists(st.sampled_from(["a", "b", "c", ".", ".."]), min_size=1, max_size=3).map("/".join),
    ),
    max_size=8,
)
paths = st.lists(st.sampled_from(["a", "b", "c", "."]), max_size=4).map("/".join)


class RealFiles:
    """What the kernel says below a root: the same questions, asked of real paths."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes:
        place = self._root / path
        if not place.is_file():
            raise FileNotFoundError(path)
        return place.read_bytes()

    def exists(self, path: str) -> bool:
        return (self._root / path).exists()

    def list(self, path: str) -> list[str]:
        place = self._root / path
        if not place.is_dir():
            raise FileNotFoundError(path)
        return sorted(os.listdir(place))  # noqa: PTH208 - names, not paths


def build(root: Path, rows: list[tuple[tuple[str, ...], str, str]]) -> None:
    """Lay out what can be laid out; a name that is taken, or lies below a file, is passed over."""
    for parts, kind, target in rows:
        place = root.joinpath(*parts)
        # A target with as many ".." as its link is deep may lead out, where the two differ by design.
        leads_out = target.split("/").count("..") >= len(parts)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "folder":
                place.mkdir(exist_ok=True)
            elif kind == "link" and not leads_out:
                place.symlink_to(target)
            elif kind == "file":
                place.write_bytes("/".join(parts).encode())
        except OSError:
            continue


def answer(handle: FolderState | RealFiles, question: str, path: str) -> object:
    try:
        return getattr(handle, question)(path)
    except FileNotFoundError:
        return "not there"


@settings(max_examples=100, deadline=None)
@given(entries, paths, st.sampled_from(["read", "exists", "list"]))
def test_every_question_has_the_answer_of_the_file_system(
    rows: list[tuple[tuple[str, ...], str, str]], path: str, question: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), rows)
        carried = answer(FolderState(Path(folder)), question, f"/{path}")
        assert carried == answer(RealFiles(Path(folder)), question, path)


@settings(max_examples=60, deadline=None)
@given(entries, st.text("abc./", max_size=12))
def test_no_question_is_answered_from_outside_the_state(
    rows: list[tuple[tuple[str, ...], str, str]], path: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "state"
        root.mkdir()
        (Path(folder) / "a").write_bytes(b"secret")
        build(root, rows)
        assert answer(FolderState(root), "read", f"/{path}") != b"secret"

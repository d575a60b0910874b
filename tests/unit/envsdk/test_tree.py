"""What a tree lists, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import SpecError, StoreError
from envsdk.tree import check_links, list_tree, scan_tree

PARTS = st.sampled_from(["a", "b", "c", ".", ".."])
TARGETS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
LINKS = st.dictionaries(st.sampled_from(["a", "b", "c", "d/a", "d/b", "d/e/c"]), TARGETS, max_size=6)


def codes(links: dict[str, str]) -> dict[str, str]:
    return {finding.path: finding.code for finding in check_links(links)}


def make_link(root: Path, path: str, target: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def test_entries_come_in_byte_order(tmp_path: Path) -> None:
    for name in ["a/b", "aa", "a-b", "A", "\U0001f600", "\uff21"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [entry.path for entry in list_tree(tmp_path)] == ["A", "a-b", "a/b", "aa", "\uff21", "\U0001f600"]


def test_a_link_to_a_directory_is_one_entry(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_text("1")
    make_link(tmp_path, "l", "d")
    assert [(e.path, e.mode, e.target) for e in list_tree(tmp_path)] == [("d/x", "100644", None), ("l", "120000", "d")]


def test_keep_prunes_a_directory(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x").write_text("")
    (tmp_path / "y").write_text("")
    assert [e.path for e in list_tree(tmp_path, keep=lambda path: path != ".git/")] == ["y"]


def test_every_finding_is_reported(tmp_path: Path) -> None:
    make_link(tmp_path, "out", "/etc/passwd")
    make_link(tmp_path, "loop", "loop")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError) as caught:
        list_tree(tmp_path)
    assert caught.value.code == "special_file"
    assert [p["code"] for p in caught.value.problems] == ["special_file", "symlink_escape", "link_cycle"]


def test_a_name_that_is_no_utf8_is_escaped_in_the_finding(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff"))).write_text("")
    _, findings = scan_tree(tmp_path)
    assert [(f.code, f.path) for f in findings] == [("non_utf8_path", "a\\xff")]


def test_a_link_target_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    make_link(tmp_path, "l", os.fsdecode(b"\xff"))
    _, findings = scan_tree(tmp_path)
    assert [f.code for f in findings] == ["non_utf8_path"]


def test_a_missing_root_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        list_tree(tmp_path / "none")
    assert caught.value.code == "unreadable_tree"


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ({"a": "b"}, {}),
        ({"a": ".."}, {"a": "symlink_escape"}),
        ({"d/a": ".."}, {}),
        ({"d/a": "../.."}, {"d/a": "symlink_escape"}),
        ({"a": "missing/../../x"}, {"a": "symlink_escape"}),
        ({"here": ".", "out": "here/../x"}, {"out": "symlink_escape"}),
        ({"a": "a/b"}, {"a": "link_cycle"}),
        ({"a": "b", "b": "c", "c": "a", "e": "a"}, dict.fromkeys("abce", "link_cycle")),
        ({"d/self": ".", "x": "d/self/self/self/y"}, {}),
        ({"a": "/", "b": "a"}, {"a": "symlink_escape", "b": "symlink_escape"}),
        ({"d/up": "..", "e": "d/up/d/up/d/up/f"}, {}),
    ],
)
def test_links_are_followed_step_by_step(links: dict[str, str], expected: dict[str, str]) -> None:
    assert codes(links) == expected


def test_a_chain_longer_than_the_stack_is_followed() -> None:
    assert codes({f"l{i}": f"l{i + 1}" for i in range(5000)}) == {}


def test_links_that_double_are_followed_once_each() -> None:
    links = {f"l{i}": f"l{i + 1}/../l{i + 1}" for i in range(200)}
    assert codes(links) == {}


@given(LINKS)
def test_what_is_accepted_stays_inside_on_a_real_file_system(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, str]
) -> None:
    # A name cannot be both a link and the folder of another.
    links = {path: target for path, target in links.items() if not any(other.startswith(path + "/") for other in links)}
    root = tmp_path_factory.mktemp("tree")
    for path, target in links.items():
        make_link(root, path, target)
    found = codes(links)
    real_root = root.resolve()
    for path in links:
        code = found.get(path)
        try:
            end = (root / path).resolve(strict=False)
        except (OSError, RuntimeError):  # pathlib's own word for a loop
            assert code == "link_cycle"
            continue
        if code is None:
            assert end == real_root or real_root in end.parents

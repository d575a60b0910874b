"""Digests name content: what changes them and what does not."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.conformance.digest_cases import DIGEST_KINDS
from envsdk.conformance.run import SkipCaseError, read_cases
from envsdk.digest import canonical, side_of, task_digests, tree_digest
from envsdk.errors import SpecError, StoreError

CASES = [
    case
    for case in read_cases(Path(__file__).parents[2] / "conformance" / "cases")
    if case.kind == "text_and_files" and case.body["kind"] in DIGEST_KINDS
]
NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=12).filter(
    lambda name: name not in {".", ".."} and len(name.encode()) < 200
)
TREES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=30), st.booleans()), max_size=6)


def write(root: Path, tree: dict[str, tuple[bytes, bool]]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, (data, executable) in tree.items():
        (root / name).write_bytes(data)
        (root / name).chmod(0o755 if executable else 0o644)
    return root


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_handed_case(case) -> None:
    DIGEST_KINDS[case.body["kind"]](case)


def test_every_kind_of_handed_case_was_seen() -> None:
    assert {case.body["kind"] for case in CASES} == set(DIGEST_KINDS)


@given(TREES)
def test_a_digest_is_that_of_the_listed_rows(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, tuple[bytes, bool]]
) -> None:
    rows = [
        [name, "100755" if tree[name][1] else "100644", hashlib.sha256(tree[name][0]).hexdigest()]
        for name in sorted(tree, key=str.encode)
    ]
    # Python's own encoder agrees with RFC 8785 on lists of strings.
    expected = hashlib.sha256(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
    assert tree_digest(write(tmp_path_factory.mktemp("t"), tree)) == expected


@given(TREES, st.sampled_from([0o000, 0o022, 0o077, 0o027]))
def test_umask_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, tuple[bytes, bool]], umask: int
) -> None:
    root = write(tmp_path_factory.mktemp("t"), tree)
    before = tree_digest(root)
    for path in root.iterdir():
        path.chmod(path.stat().st_mode & ~umask & 0o777 | 0o400)
    assert tree_digest(root) == before


@given(TREES, NAMES, st.binary(max_size=10))
def test_one_more_file_is_another_tree(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, tuple[bytes, bool]], name: str, data: bytes
) -> None:
    root = write(tmp_path_factory.mktemp("t"), {key: value for key, value in tree.items() if key != name})
    before = tree_digest(root)
    (root / name).write_bytes(data)
    assert tree_digest(root) != before


def test_hash_seed_and_locale_change_nothing(tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"ü": (b"1", True), "b": (b"2", False)})
    line = "import sys, pathlib; from envsdk.digest import tree_digest; print(tree_digest(pathlib.Path(sys.argv[1])))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", line, str(root)],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed, locale in [("0", "C"), ("7", "C.UTF-8")]
    }
    assert digests == {tree_digest(root)}


def test_memory_stays_flat_for_a_large_file(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate(200 << 20)
    tracemalloc.start()
    tree_digest(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").write_text("x")
    from envsdk import digest
    from envsdk.tree import list_tree

    entries = list_tree(tmp_path)
    (tmp_path / "gone").unlink()
    with pytest.raises(StoreError, match="gone") as caught:
        digest.tree_rows(tmp_path, entries)
    assert caught.value.code == "unreadable_file"


def test_a_refused_tree_has_no_digest(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/etc")
    with pytest.raises(SpecError) as caught:
        tree_digest(tmp_path)
    assert caught.value.code == "symlink_escape"


def test_canonical_json_has_a_form_for_every_toml_value() -> None:
    value = {"b": 2**60, "a": dt.date(2026, 1, 2), "c": [1.0, True, "é"]}
    assert (
        canonical(value).decode() == '{"a":"toml:date:2026-01-02","b":"toml:int:1152921504606846976","c":[1,true,"é"]}'
    )


@pytest.mark.parametrize(
    ("path", "side"),
    [
        ("instruction.md", "task"),
        ("environment/Dockerfile", "task"),
        ("steps/one/instruction.md", "task"),
        ("steps/one/workdir/setup.sh", "task"),
        ("steps/one/tests/test.sh", "verifier"),
        ("steps/one/solution/solve.sh", ""),
        ("tests/test.sh", "verifier"),
        ("solution/solve.sh", ""),
        ("mutants/wrong/a.sh", ""),
        ("README.md", ""),
        ("task.toml", ""),
        ("tests", ""),
    ],
)
def test_side(path: str, side: str) -> None:
    assert side_of(path) == side


ROWS = [
    ["environment/Dockerfile", "100644", "0" * 64],
    ["solution/solve.sh", "100755", "1" * 64],
    ["tests/test.sh", "100755", "2" * 64],
]


@pytest.mark.parametrize(
    ("index", "changed"), [(0, {"task", "package"}), (1, {"package"}), (2, {"verifier", "package"})]
)
def test_a_change_moves_its_own_digest_and_the_packages(index: int, changed: set[str]) -> None:
    before = task_digests(ROWS, task_tables={}, verifier_tables={}).model_dump()
    rows = [list(row) for row in ROWS]
    rows[index][2] = "f" * 64
    after = task_digests(rows, task_tables={}, verifier_tables={}).model_dump()
    assert {name for name in before if before[name] != after[name]} == changed


def test_tables_are_part_of_their_digest() -> None:
    bare = task_digests(ROWS, task_tables={}, verifier_tables={})
    task = task_digests(ROWS, task_tables={"agent": {"user": "x"}}, verifier_tables={})
    verifier = task_digests(ROWS, task_tables={}, verifier_tables={"verifier": {"user": "x"}})
    assert (task.task != bare.task, task.verifier == bare.verifier) == (True, True)
    assert (verifier.task == bare.task, verifier.verifier != bare.verifier) == (True, True)


def test_an_unknown_tree_field_skips_the_case(tmp_path: Path) -> None:
    from envsdk.conformance.digest_cases import build_tree

    with pytest.raises(SkipCaseError, match="xattr"):
        build_tree(tmp_path, [{"path": "a", "xattr": "b"}])

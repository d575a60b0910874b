"""The conformance runner: what it reads, what it counts, what it does not know."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from envsdk.conformance import run
from envsdk.conformance.run import Case, SkipCaseError, installed_judges, read_cases, run_cases
from envsdk.errors import UsageError


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)


def test_yaml_and_json_files_with_a_head_are_read_in_order(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", "kind: one\nformat: 1\ncases:\n- {id: x}\n- {}\n")
    write(tmp_path, "a.json", '{"header": {"file": "two.json"}, "cases": [{"id": "y"}]}')
    write(tmp_path, "none.yaml", "just: data\n")
    write(tmp_path, "broken.json", "{")
    found = list(read_cases(tmp_path))
    assert [(case.kind, case.id) for case in found] == [
        ("two", "y"),
        ("one", "x"),
        ("one", "1"),
        ("unreadable", "broken.json"),
    ]
    assert found[1].head == {"kind": "one", "format": 1}


def test_every_outcome_is_counted_and_what_is_unknown_is_never_a_pass(tmp_path: Path) -> None:
    write(tmp_path, "c.yaml", "kind: k\ncases: [{id: good}, {id: bad}, {id: odd}, {id: breaks}]\n")
    write(tmp_path, "d.yaml", "kind: strange\ncases: [{id: z}]\n")

    def judge(case: Case) -> None:
        if case.id == "odd":
            raise SkipCaseError("unknown option")
        if case.id == "breaks":
            raise KeyError("x")
        assert case.id == "good"

    tally = run_cases(tmp_path, {"k": judge})
    assert tally.closing_line() == "1 passed, 2 failed, 2 skipped"
    assert [result.why for result in tally.results if result.outcome == "skipped"] == [
        "unknown option",
        "unknown kind 'strange'",
    ]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.yaml", b"kind: k\ncases: [{a: b\n", "a.yaml cannot be read"),
        ("a.json", b"[" * 100_000, "a.json cannot be read"),
        ("a.yaml", b'kind: k\ncases: [{id: "\xff"}]\n', "a.yaml cannot be read"),
        ("a.yaml", b"kind: k\ncases: [1]\n", "it has no fields"),
        ("a.yaml", b"kind: k\ncases: [null]\n", "it has no fields"),
        ("a.yaml", b"kind: k\nformat: 2\ncases: [{id: x}]\n", "unknown format 2"),
        ("a.yaml", b"cases: [{id: x}]\n", "unknown kind ''"),
        ("a.yaml", b"kind: [k]\ncases: [{id: x}]\n", "unknown kind \"['k']\""),
    ],
)
def test_what_cannot_be_judged_is_skipped_and_named(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    [result] = run_cases(tmp_path, {"k": lambda case: None}).results
    assert (result.outcome, result.why[: len(why)]) == ("skipped", why)


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_a_folder_without_cases_is_said(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError):
        list(read_cases(tmp_path / folder))


def test_a_package_whose_extra_is_missing_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    entries = [
        SimpleNamespace(load=missing, module="trainer.conformance"),
        SimpleNamespace(load=lambda: {"k": print}, module="envsdk.conformance.kinds"),
    ]
    monkeypatch.setattr(run, "entry_points", lambda group: entries)
    assert installed_judges() == {"k": print}


def test_a_package_with_a_part_missing_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ModuleNotFoundError("No module named 'trainer.gone'", name="trainer.gone")

    monkeypatch.setattr(run, "entry_points", lambda group: [SimpleNamespace(load=broken, module="trainer.conformance")])
    with pytest.raises(ModuleNotFoundError):
        installed_judges()

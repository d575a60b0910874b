"""``envsdk conform``: counts, names what it skips, and exits 1 where a case failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from envsdk.cli import conform as module
from envsdk.cli.conform import conform
from envsdk.conformance.run import Case, SkipCaseError
from envsdk.errors import UsageError


def judge(case: Case) -> None:
    if case.body.get("odd"):
        raise SkipCaseError("unknown option 'odd'")
    assert case.body["right"], "wrong"


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "installed_judges", lambda: {"known": judge})
    return tmp_path


def write(folder: Path, kind: str, *cases: str) -> None:
    (folder / f"{kind}.yaml").write_text(f"kind: {kind}\ncases:\n" + "".join(f"- {{{case}}}\n" for case in cases))


def test_the_closing_line_counts_and_a_pass_exits_0(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(cases, "known", "id: a, right: true", "id: b, right: true", "id: c, odd: true")
    write(cases, "strange", "id: d")
    conform(cases)
    out, err = capsys.readouterr()
    assert out == "2 passed, 0 failed, 2 skipped\n"
    assert "skipped 1 of strange: unknown kind 'strange'" in err
    assert "skipped 1 of known: unknown option 'odd'" in err


def test_a_failed_case_is_named_and_exits_1(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(cases, "known", "id: a, right: true", "id: bad, right: false")
    with pytest.raises(typer.Exit) as ended:
        conform(cases)
    assert ended.value.exit_code == 1
    out, err = capsys.readouterr()
    assert out == "1 passed, 1 failed, 0 skipped\n"
    assert "known bad AssertionError: wrong" in err


def test_json_owns_stdout(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(cases, "known", "id: bad, right: false")
    with pytest.raises(typer.Exit):
        conform(cases, as_json=True)
    envelope = json.loads(capsys.readouterr().out)
    assert envelope["ok"] is False
    assert envelope["failed"] == 1
    assert envelope["errors"][0]["where"] == "known bad"
    assert envelope["cases"][0]["outcome"] == "failed"


def test_verbose_names_what_passed(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(cases, "known", "id: fine, right: true")
    conform(cases, verbose=True)
    assert "known fine" in capsys.readouterr().err


def test_a_folder_without_cases_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        conform(tmp_path)
    assert refused.value.code == "no_cases"

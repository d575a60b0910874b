"""``envsdk check``: exit codes, what is on stdout, and the files it writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import typer

from envsdk.authoring.scaffold import scaffold
from envsdk.cli import progress
from envsdk.cli.check import check
from envsdk.errors import UsageError

LAX = """
from envsdk import Draw, task, verifier


@verifier
def lax(answer: str) -> bool:
    return True


@task(verifier=lax)
def open_door() -> Draw:
    return Draw(instruction="Say it.", oracle="it")
"""


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))


@pytest.fixture
def good(tmp_path: Path) -> str:
    return str(scaffold(tmp_path / "good", kind="text").root)


@pytest.fixture
def lax(tmp_path: Path) -> str:
    (tmp_path / "lax_tasks.py").write_text(LAX)
    return str(tmp_path / "lax_tasks.py")


def test_a_good_task_exits_0_and_shows_every_check(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    check([good])
    out = capsys.readouterr().out
    assert "✔ good  pass" in out
    assert "✔ oracle" in out
    assert out.endswith("1 pass, 0 fail\n")


def test_a_task_without_an_oracle_is_told_as_incomplete_and_exits_0_but_1_where_strict(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(Path(good) / "solution")
    check([good], checks="oracle,noop,repeat")
    out = capsys.readouterr().out
    assert out.startswith("○ good  incomplete: no oracle; 1 passed, 2 skipped\n")
    assert out.endswith("0 pass, 0 fail, 1 incomplete\n")
    with pytest.raises(typer.Exit) as ended:
        check([good], checks="oracle,noop,repeat", strict=True)
    assert ended.value.exit_code == 1


def test_a_bad_verifier_exits_1_with_evidence_fix_and_rerun_line(lax: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        check([lax], checks="oracle,noop")
    assert ended.value.exit_code == 1
    out = capsys.readouterr().out
    assert "✘ noop" in out
    assert "fix: " in out
    assert f"rerun: envsdk check {lax} --checks noop --fresh" in out


def test_json_is_one_envelope_on_stdout(good: str, lax: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        check([good, lax], checks="oracle,noop", as_json=True)
    out, err = capsys.readouterr()
    envelope = json.loads(out)
    assert envelope["ok"] is False
    assert [task["slug"] for task in envelope["tasks"]] == ["good", "open-door"]
    assert envelope["tasks"][0]["checks"][0].keys() >= {"check", "outcome", "why", "evidence"}
    assert envelope["errors"][0]["where"] == "open-door[noop]"
    assert "✔ good" in err, "progress goes to stderr"


def test_many_tasks_show_only_what_did_not_pass(good: str, lax: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        check([good, lax], checks="oracle,noop")
    out = capsys.readouterr().out
    assert "✔ oracle" not in out
    assert out.endswith("1 pass, 1 fail\n")


def test_a_pipe_is_told_on_stderr_how_far_a_check_has_come(
    good: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_S", 0.001)
    check([good], checks="oracle,noop,repeat", fresh=True)
    out, err = capsys.readouterr()
    said = set(err.splitlines())
    assert said
    assert said <= {f"checking: {n} checks answered, 0 of 1 tasks done" for n in range(4)}
    assert "answered" not in out


def test_an_invalid_task_exits_1_and_is_named(tmp_path: Path, good: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "task.toml").write_text("[")
    with pytest.raises(typer.Exit) as ended:
        check([good, str(bad)], checks="oracle")
    assert ended.value.exit_code == 1
    assert f"✘ {bad}" in capsys.readouterr().out


def test_a_wrong_check_name_is_a_usage_error_before_anything_starts(good: str) -> None:
    with pytest.raises(UsageError) as refused:
        check([good], checks="orcale")
    assert refused.value.code == "unknown_check"


def test_junit_and_page_are_written(tmp_path: Path, good: str) -> None:
    check([good], checks="oracle", junit=tmp_path / "j.xml", html=tmp_path / "p.html")
    assert ET.parse(tmp_path / "j.xml").getroot().find("testsuite/testcase") is not None
    assert "good" in (tmp_path / "p.html").read_text()

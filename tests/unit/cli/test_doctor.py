"""`envsdk doctor` prints every finding, and its status says whether something essential is missing."""

import json

import pytest
import typer
from typer.testing import CliRunner

from envsdk.cli import doctor as command
from envsdk.prerequisites import Finding
from envsdk.sandboxes.checkpoint import NAME as CHECKPOINTS

GOOD = Finding(name="python", state="ok", detail="3.11")
GONE = Finding(name="sandbox", state="missing", detail="neither", fix="run setup")
OPTIONAL = Finding(name="chromium", state="absent", detail="not installed", fix="apt-get install chromium")


def _run(monkeypatch: pytest.MonkeyPatch, *findings: Finding, flags: tuple[str, ...] = ()):
    def examine(*, begun) -> tuple[Finding, ...]:
        for finding in findings:
            begun(finding.name)
        return findings

    monkeypatch.setattr(command, "examine", examine)
    app = typer.Typer()
    app.command()(command.doctor)
    return CliRunner().invoke(app, list(flags))


@pytest.mark.parametrize(("findings", "status"), [((GOOD,), 0), ((GOOD, OPTIONAL), 0), ((GOOD, GONE), 3)])
def test_only_what_is_essential_decides_the_status(
    monkeypatch: pytest.MonkeyPatch, findings: tuple[Finding, ...], status: int
) -> None:
    assert _run(monkeypatch, *findings).exit_code == status


def test_the_envelope_carries_every_finding_and_an_error_for_each_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _run(monkeypatch, GOOD, GONE, OPTIONAL, flags=("--json",))
    envelope = json.loads(result.stdout)
    assert [check["name"] for check in envelope["checks"]] == ["python", "sandbox", "chromium", CHECKPOINTS]
    assert envelope["ok"] is False
    assert envelope["errors"] == [
        {"code": "prerequisite_missing", "message": "neither", "hint": "run setup", "where": "sandbox"}
    ]


def test_a_long_path_is_shown_whole_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/path/" + "that/nobody/could/copy/" * 5 + "[if it were cut]"
    found = Finding(name="registry", state="absent", detail=path, fix=f"rm {path}")
    lines = [line.split() for line in _run(monkeypatch, found).stdout.splitlines()]
    assert lines[0] == ["absent", "registry", *path.split()]
    assert lines[1] == ["fix:", "rm", *path.split()]


def test_the_table_shows_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _run(monkeypatch, GONE)
    assert "run setup" in result.stdout


def test_a_pipe_is_told_on_stderr_what_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _run(monkeypatch, GOOD, OPTIONAL)
    assert result.stderr.splitlines()[:2] == ["looking at python", "looking at chromium"]
    assert "looking at" not in result.stdout

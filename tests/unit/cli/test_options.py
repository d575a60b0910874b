"""Options that several commands share: a wrong name is refused wherever it can be given, before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsdk.authoring.scaffold import scaffold
from envsdk.cli import app

COMMANDS = {
    "check": ["check", "TASK"],
    "run": ["run", "TASK", "--policy", "noop"],
    "score": ["score", "TASK", "--verifier", "TASK"],
    "calibrate": ["registry", "calibrate", "tag:x", "--policy", "vllm:smollm2"],
    "refresh": ["registry", "refresh", "a-set"],
    "eval": ["eval", "--query", "tag:x"],
}


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A task that needs no sandbox."""
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ENVSDK_SANDBOX", raising=False)
    return str(scaffold(tmp_path / "text", kind="text").root)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistyped_sandbox_is_refused_though_the_task_needs_none(
    name: str, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [task if word == "TASK" else word for word in COMMANDS[name]]
    assert app.run([*words, "--sandbox", "dokcer", "--json"]) == 2
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["code"], error["hint"]) == ("unknown_sandbox", "did you mean 'docker'?")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistyped_setting_is_refused_with_its_variable(
    name: str, task: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSDK_SANDBOX", "bubblewarp")
    words = [task if word == "TASK" else word for word in COMMANDS[name]]
    assert app.run([*words, "--json"]) == 2
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["code"], error["where"]) == ("unknown_sandbox", "ENVSDK_SANDBOX")


@pytest.mark.parametrize("name", ["docker", "bubblewrap"])
def test_a_back_end_that_there_is_may_be_named_where_none_is_needed(name: str, task: str) -> None:
    assert app.run(["check", task, "--checks", "noop", "--sandbox", name]) == 0

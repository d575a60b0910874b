"""``envsdk init`` writes a task that loads, of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsdk.cli.app import run
from envsdk.spec.load import load_task


@pytest.mark.parametrize("kind", ["text", "state", "script"])
def test_each_kind_loads_with_oracle_and_wrong_answers(tmp_path: Path, capsys, kind: str) -> None:
    assert run(["init", str(tmp_path / "my-task"), "--kind", kind, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    task = load_task(tmp_path / "my-task")
    assert (task.slug, task.spec.verifier.kind, task.oracle) == ("my-task", kind, "solution/solve.sh")
    assert (result["task_digest"], result["verifier_digest"]) == (task.digests.task, task.digests.verifier)
    assert len(list((task.root / "mutants" / "wrong").iterdir())) == 2


def test_the_verifier_agrees_with_the_oracle(tmp_path: Path) -> None:
    run(["init", str(tmp_path / "t")])
    space: dict[str, object] = {}
    exec((tmp_path / "t" / "tests" / "verifier.py").read_text(), space)
    params = json.loads((tmp_path / "t" / "tests" / "params.json").read_text())
    oracle = (tmp_path / "t" / "solution" / "answer.txt").read_text()
    wrong = [path.read_text() for path in (tmp_path / "t" / "mutants" / "wrong").iterdir()]
    assert [space["is_right"](answer, **params) for answer in (oracle, *wrong)] == [1.0, 0.0, 0.0]


def test_a_taken_folder_is_left_alone(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    assert run(["init", str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "destination_exists"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_unknown_kind_is_guessed(tmp_path: Path, capsys) -> None:
    assert run(["init", str(tmp_path / "t"), "--kind", "txt"]) == 2
    assert "did you mean 'text'?" in capsys.readouterr().err

"""reasoning-gym in: drawn by seed, judged by the dataset's own scorer at its full score."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from envsdk.cli.app import run
from envsdk.errors import PrerequisiteError, UsageError
from envsdk.formats.reasoning_gym import VERIFIER, import_reasoning_gym, parse_settings

pytest.importorskip("reasoning_gym")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SPACE: dict[str, object] = {}
exec(VERIFIER, SPACE)


def test_each_entry_is_a_task_that_its_own_answer_solves(tmp_path: Path) -> None:
    tasks = import_reasoning_gym("basic_arithmetic", tmp_path, size=3, seed=5).tasks
    assert [t.slug for t in tasks] == [f"basic_arithmetic-5-{n}" for n in range(3)]
    for task in tasks:
        answer = (task.root / "solution" / "answer.txt").read_text()
        assert SPACE["score"](f" {answer}\n", **task.spec.verifier.params) == 1.0
        assert SPACE["score"]("no idea", **task.spec.verifier.params) < task.spec.verifier.success_at == 1.0


def test_the_same_seed_draws_the_same(tmp_path: Path) -> None:
    first = import_reasoning_gym("letter_counting", tmp_path / "a", size=2).tasks
    second = import_reasoning_gym("letter_counting", tmp_path / "b", size=2).tasks
    assert [t.digests for t in first] == [t.digests for t in second]


def test_settings_reach_the_dataset(tmp_path: Path) -> None:
    task = import_reasoning_gym("basic_arithmetic", tmp_path, size=1, settings={"min_terms": 2, "max_terms": 2}).tasks[
        0
    ]
    assert task.spec.verifier.params["entry"]["metadata"]["num_terms"] == 2


def test_a_dataset_that_is_none_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        import_reasoning_gym("basic_arithmetics", tmp_path, size=1)
    assert (caught.value.code, caught.value.hint) == ("no_dataset", "did you mean 'basic_arithmetic'?")


@pytest.mark.parametrize("settings", [{"no_such": 1}, {"min_terms": 9, "max_terms": 1}])
def test_settings_that_are_refused_are_the_callers_fault(tmp_path: Path, settings: dict[str, int]) -> None:
    with pytest.raises(UsageError) as caught:
        import_reasoning_gym("basic_arithmetic", tmp_path, size=1, settings=settings)
    assert caught.value.code == "bad_settings"


def test_settings_are_json_or_text() -> None:
    assert parse_settings(["a=1", "b=[2]", "c=x=y", "d=true"]) == {"a": 1, "b": [2], "c": "x=y", "d": True}
    with pytest.raises(UsageError):
        parse_settings(["a"])


def test_without_the_package_it_is_a_missing_prerequisite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(PrerequisiteError):
        import_reasoning_gym("basic_arithmetic", tmp_path, size=1)


def test_the_command_reports_what_it_drew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", "reasoning-gym", "spell_backward", str(tmp_path), "--size", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["imported"] == 2

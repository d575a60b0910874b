"""The runner that lies in a task: what it makes of a verifier's value, and of imports it cannot serve."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from envsdk.authoring import runner


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(runner, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(runner, "__file__", str(tmp_path / "run_verifier.py"))
    monkeypatch.setattr(runner.sys, "meta_path", list(runner.sys.meta_path))
    monkeypatch.delitem(runner.sys.modules, "verifier", raising=False)
    return tmp_path


def judge(folder: Path, source: str, answer: str | None = "x") -> dict[str, float]:
    (folder / "verifier.py").write_text(source)
    if answer is not None:
        (folder / "answer").write_text(answer)
    runner.main("judge", "text", str(folder / "answer"))
    return json.loads((folder / "results" / "reward.json").read_text())


@pytest.mark.parametrize(
    ("value", "rewards"), [(True, {"reward": 1.0}), (0, {"reward": 0.0}), ({"a": 1, "b": 0.5}, {"a": 1.0, "b": 0.5})]
)
def test_values_become_numbers_by_name(value: object, rewards: dict[str, float]) -> None:
    assert runner.rewards_of(value) == rewards


@pytest.mark.parametrize("value", ["high", None, [1]])
def test_what_is_no_number_is_an_error(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        runner.rewards_of(value)


def test_a_verifier_gets_answer_and_params(results: Path) -> None:
    (results / "params.json").write_text('{"n": 2}')
    assert judge(results, "def judge(answer, *, n): return len(answer) * n", "abc") == {"reward": 6.0}


def test_a_missing_answer_is_empty(results: Path) -> None:
    assert judge(results, "def judge(answer): return answer == ''", None) == {"reward": 1.0}


def test_nan_is_never_written(results: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        judge(results, "def judge(answer): return float('nan')")
    assert not (results / "results" / "reward.json").exists()


@pytest.mark.parametrize("make", ["mkdir", "mkfifo"])
def test_what_is_no_file_is_no_answer(tmp_path: Path, make: str) -> None:
    getattr(os, make)(tmp_path / "answer")
    assert runner.read_answer(str(tmp_path / "answer")) == ""


def test_an_answer_beyond_any_use_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_ANSWER_BYTES", 2)
    (tmp_path / "answer").write_text("abc")
    with pytest.raises(ValueError, match="larger than 2"):
        runner.read_answer(str(tmp_path / "answer"))


def test_the_stub_serves_every_import_of_envsdk(tmp_path: Path) -> None:
    finder = runner.Finder(tmp_path)
    assert finder.find_spec("envsdk.authoring.x") is not None
    assert finder.find_spec("envsdkx") is None
    module = finder.create_module(finder.find_spec("envsdk"))

    @module.family(levels={"a": (1,)}, verifier=module.Script("x"))
    def decorated() -> "module.Draw | None":  # noqa: UP037
        return 7

    assert (decorated(), module.verifier(decorated) is decorated, (module.Draw | None) is not None) == (7, True, True)

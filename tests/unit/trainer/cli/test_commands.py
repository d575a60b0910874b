"""The trainer's commands at their edge: settings shown, mistakes told, nothing started for them."""

from __future__ import annotations

import json
from pathlib import Path

import platformdirs
import pytest

from envsdk.cli.app import run
from tests.fakes.learner import fake_run
from trainer.claim import claimed
from trainer.cli.train import closing
from trainer.config import TrainConfig
from trainer.loop import run_steps
from trainer.run_dir import RunDir


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_args, **_kwargs: tmp_path / "user")
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))


def envelope(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_shows_every_setting_with_its_origin_and_starts_nothing(capsys, tmp_path: Path) -> None:
    assert run(["train", "--dry-run", "--steps", "3", "--set", "learner.lr=2e-5", "--json"]) == 0
    shown = envelope(capsys)
    assert shown["settings"]["steps"] == 3
    assert shown["settings"]["learner"]["lr"] == 2e-5
    assert shown["origins"]["steps"] == "flag"
    assert not (tmp_path / "runs").exists()


def test_the_sandbox_and_the_registry_have_flags_of_their_own(capsys) -> None:
    place = ["--sandbox", "bubblewrap", "--registry", "sqlite:///elsewhere.sqlite"]
    assert run(["train", "--dry-run", *place, "--json"]) == 0
    shown = envelope(capsys)
    for name, value in zip(("sandbox", "registry"), place[1::2], strict=True):
        assert (shown["settings"][name], shown["origins"][name]) == (value, "flag")


def test_a_finished_run_is_told_in_rounded_numbers_that_name_what_they_are_of() -> None:
    result = {"steps": 2, "reward_first": 0.6, "reward_last": 23 / 28, "run_dir": "runs/first"}
    assert closing(result) == "2 steps, mean reward of launched episodes 0.600 -> 0.821: runs/first"
    assert "- -> -" in closing({**result, "reward_first": None, "reward_last": None})


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["train"], "no_query"),
        (["train", "--query", "x", "--steps", "0"], "invalid_config"),
        (["train", "--query", "x", "--set", "steps"], "bad_setting"),
        (["train", "--query", "x", "--set", "steps.x=1"], "invalid_config"),
        (["train", "--query", "x", "--set", "engine=3"], "invalid_config"),
        (["train", "--query", "x", "--set", "learner.lr=inf"], "invalid_config"),
        (["train", "--query", "x", "--set", "learner.lr=nan"], "invalid_config"),
        (["train", "--query", "x", "--set", "learner.correction.hi=inf"], "invalid_config"),
        (["train", "--query", "x", "--set", "engine.kv_cache_gib=0"], "invalid_config"),
        (["train", "--query", "x", "--set", "engine.threads=x"], "invalid_config"),
        (["train", "--query", "x", "--set", "seed=-1"], "invalid_config"),
        (["train", "--query", "x", "--set", "seed=99999999999999999999"], "invalid_config"),
        (["train", "--query", "x", "--name", ""], "bad_run_name"),
        (["train", "--query", "x", "--name", ".."], "bad_run_name"),
        (["train", "--query", "x", "--name", "../elsewhere"], "bad_run_name"),
        (["train", "--query", "x", "--name", "latest"], "bad_run_name"),
        (["train", "--name", "nothing", "--resume"], "no_run"),
        (["train", "--config", "nowhere.toml"], "no_config"),
        (["eval"], "usage"),
        (["eval", "--query", "a", "--set", "b@1"], "usage"),
        (["report", "nowhere"], "no_run"),
        (["report", "nowhere", "--eval", "before.jsonl"], "bad_setting"),
    ],
)
def test_a_mistake_is_a_usage_error_with_its_code(arguments: list[str], code: str, capsys) -> None:
    assert run([*arguments, "--json"]) == 2
    assert envelope(capsys)["errors"][0]["code"] == code


@pytest.mark.parametrize("text", ["train = 5\n", "[train.steps]\nx = 1\n", "[train]\nengine = 5\n", "[train\n"])
def test_a_settings_file_of_the_wrong_shape_is_a_usage_error(text: str, capsys, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    assert run(["train", "--dry-run", "--config", "bad.toml", "--json"]) == 2
    assert envelope(capsys)["errors"][0]["code"] in {"invalid_config", "bad_config"}


def test_what_lies_in_a_directory_that_is_no_run_is_never_touched(capsys, tmp_path: Path) -> None:
    work = tmp_path / "runs" / "mine" / "work.txt"
    work.parent.mkdir(parents=True)
    work.write_text("mine")
    assert run(["train", "--query", "tag:nothing", "--name", "mine", "--json"]) == 2
    assert envelope(capsys)["errors"][0]["code"] == "bad_run_dir"
    assert work.read_text() == "mine"


def test_a_resume_that_fails_removes_nothing(capsys, tmp_path: Path) -> None:
    path = RunDir.create(tmp_path / "runs" / "mine", TrainConfig(query="tag:nothing")).path
    (path / "checkpoints").mkdir()
    assert run(["train", "--name", "mine", "--resume", "--json"]) == 1
    assert envelope(capsys)["errors"][0]["code"] == "empty_query"
    assert (path / "checkpoints").is_dir()
    assert (path / "run.json").is_file()


@pytest.mark.parametrize(
    "other",
    [["--config", "more.toml"], ["--query", "tag:other"], ["--model", "tiny"], ["--set", "query=tag:other"]],
    ids=lambda other: other[0],
)
def test_a_resumed_run_cannot_be_made_another_one(other: list[str], capsys, tmp_path: Path) -> None:
    RunDir.create(tmp_path / "runs" / "mine", TrainConfig(query="tag:nothing"))
    (tmp_path / "more.toml").write_text("[train]\nsteps = 3\n")
    assert run(["train", "--name", "mine", "--resume", *other, "--json"]) == 2
    assert envelope(capsys)["errors"][0]["code"] == "other_run"


def test_a_resumed_run_may_be_told_what_it_is_and_how_much_longer_it_goes_on(capsys, tmp_path: Path) -> None:
    RunDir.create(tmp_path / "runs" / "mine", TrainConfig(query="tag:nothing", steps=3, seed=7))
    same = ["--query", "tag:nothing", "--model", "smollm2", "--steps", "9"]
    assert run(["train", "--name", "mine", "--resume", *same, "--dry-run", "--json"]) == 0
    settings = envelope(capsys)["settings"]
    assert (settings["steps"], settings["seed"]) == (9, 7)


def test_a_directory_in_use_is_refused_and_left_alone(capsys, tmp_path: Path) -> None:
    path = RunDir.create(tmp_path / "runs" / "mine", TrainConfig(query="tag:nothing")).path
    with claimed(path):
        assert run(["train", "--name", "mine", "--resume", "--json"]) == 2
    assert envelope(capsys)["errors"][0]["code"] == "run_in_use"
    assert json.loads((path / "run.json").read_text())["status"] == "running"


def test_a_query_that_matches_nothing_is_exit_one_and_leaves_no_run_behind(capsys, tmp_path: Path) -> None:
    assert run(["train", "--query", "tag:nothing", "--json"]) == 1
    assert envelope(capsys)["errors"][0]["code"] == "empty_query"
    assert not (tmp_path / "runs" / "train").exists()


def test_a_run_is_not_overwritten(capsys, tmp_path: Path) -> None:
    RunDir.create(tmp_path / "runs" / "mine", TrainConfig())
    assert run(["train", "--query", "x", "--name", "mine", "--json"]) == 2
    assert envelope(capsys)["errors"][0]["code"] == "run_exists"


async def _finished(folder: Path) -> None:
    made = await fake_run(folder, steps=2)
    await run_steps(made.parts)
    made.close()


def test_a_report_is_written_beside_the_run_or_where_it_is_told(capsys, tmp_path: Path) -> None:
    import asyncio

    asyncio.run(_finished(tmp_path / "r"))
    assert run(["report", str(tmp_path / "r"), "--json"]) == 0
    assert Path(envelope(capsys)["page"]).read_text().startswith("<!doctype html>")
    assert run(["report", str(tmp_path / "r"), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()

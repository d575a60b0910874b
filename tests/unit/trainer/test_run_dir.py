"""A run's directory: never overwritten, readable at any moment, undone steps forgotten."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from envsdk.errors import StoreError, UsageError
from envsdk.files.jsonl import read_rows
from registry.outcomes import RUN_NAME
from trainer.config import TrainConfig, resolve
from trainer.run_dir import RunDir


def test_what_a_run_is_stands_there_before_it_does_anything(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "a", TrainConfig(seed=5), model="tiny")
    facts = json.loads((tmp_path / "a" / "run.json").read_text())
    assert facts["status"] == "running"
    assert (facts["seed"], facts["model"]) == (5, "tiny")
    assert {"command", "versions", "git", "hardware", "started"} <= set(facts)


def test_its_settings_can_be_read_back_as_a_configuration(tmp_path: Path) -> None:
    config = TrainConfig(query="tag:shell", steps=3)
    run = RunDir.create(tmp_path / "a", config)
    assert tomllib.loads((run.path / "config.toml").read_text())["train"]["query"] == "tag:shell"
    assert resolve({}, config=run.path / "config.toml").config == config


def fake_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin" / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")


def test_the_hardware_names_its_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(tmp_path, monkeypatch, "echo 'NVIDIA H200, 143771, 570.1'; echo 'NVIDIA Odd, [N/A], 570.1'")
    assert RunDir.create(tmp_path / "a", TrainConfig()).facts["hardware"]["gpus"] == [
        {"name": "NVIDIA H200", "memory_mib": 143771, "driver": "570.1"},
        {"name": "NVIDIA Odd", "memory_mib": None, "driver": "570.1"},
    ]


def test_a_machine_whose_driver_fails_has_no_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(tmp_path, monkeypatch, "echo 'NVIDIA-SMI has failed, it could not, communicate'; exit 9")
    assert RunDir.create(tmp_path / "a", TrainConfig()).facts["hardware"]["gpus"] == []


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "a", TrainConfig())
    with pytest.raises(UsageError, match="resume") as caught:
        RunDir.create(tmp_path / "a", TrainConfig())
    assert caught.value.code == "run_exists"


def test_opening_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        RunDir.open(tmp_path / "a")
    assert caught.value.code == "no_run"


def test_facts_are_added_and_survive_reopening(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "a", TrainConfig()).update(task_set="x@1")
    again = RunDir.open(tmp_path / "a")
    again.update(status="done")
    assert RunDir.open(tmp_path / "a").facts["task_set"] == "x@1"
    assert RunDir.open(tmp_path / "a").facts["status"] == "done"


def test_latest_points_to_the_newest_run(tmp_path: Path) -> None:
    for name in "ab":
        RunDir.create(tmp_path / name, TrainConfig())
    assert (tmp_path / "latest").resolve() == tmp_path / "b"


def test_metrics_after_a_step_can_be_forgotten(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "a", TrainConfig())
    for step in (1, 2, 3):
        run.metrics({"step": step})
    run.forget_after(1)
    assert [row["step"] for row in read_rows(run.path / "metrics.jsonl").rows] == [1]


def test_a_metric_that_is_no_number_is_refused(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "a", TrainConfig())
    with pytest.raises(StoreError):
        run.metrics({"step": 1, "loss": float("nan")})


def test_a_run_that_started_no_episode_leaves_nothing_behind_and_its_name_free(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "a", TrainConfig())
    run.discard_unstarted()
    assert list(tmp_path.iterdir()) == []
    RunDir.create(tmp_path / "a", TrainConfig())


def test_a_run_with_an_episode_is_kept(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "a", TrainConfig())
    (run.path / "dispatched.jsonl").write_text("{}\n")
    run.discard_unstarted()
    assert (run.path / "run.json").exists()


def test_discarding_a_run_leaves_the_link_to_a_newer_one(tmp_path: Path) -> None:
    older = RunDir.create(tmp_path / "a", TrainConfig())
    RunDir.create(tmp_path / "b", TrainConfig())
    older.discard_unstarted()
    assert (tmp_path / "latest").readlink() == Path("b")


@pytest.mark.parametrize(
    "left", [[], [".lock"], [".lock", "config.toml"], [".lock", "config.toml", ".run.json.partial"]]
)
def test_what_a_kill_before_the_first_status_left_is_taken_over(tmp_path: Path, left: list[str]) -> None:
    (tmp_path / "a").mkdir()
    for name in left:
        (tmp_path / "a" / name).write_text("")
    assert RunDir.create(tmp_path / "a", TrainConfig()).facts["status"] == "running"


def test_a_directory_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"notes\.txt") as caught:
        RunDir.create(tmp_path, TrainConfig())
    assert caught.value.code == "bad_run_dir"
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_runs_of_one_name_are_two_in_a_registry_and_a_reopened_one_is_the_same(tmp_path: Path) -> None:
    names = [RunDir.create(tmp_path / folder / "a", TrainConfig()).registry_name for folder in ("one", "other")]
    assert len(set(names)) == 2
    assert [RunDir.open(tmp_path / folder / "a").registry_name for folder in ("one", "other")] == names


def test_a_long_name_fits_a_registry(tmp_path: Path) -> None:
    assert len(RunDir.create(tmp_path / ("a" * 200), TrainConfig()).registry_name) <= RUN_NAME


def test_a_reopened_run_is_never_discarded(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "a", TrainConfig())
    RunDir.open(tmp_path / "a").discard_unstarted()
    assert (tmp_path / "a" / "run.json").exists()


@pytest.mark.parametrize("damaged", [b"{", b"[]", b"{}", b'{"status": 5}', b"", b"\xff", b"null"])
def test_facts_that_cannot_be_read_are_an_error_with_its_code(tmp_path: Path, damaged: bytes) -> None:
    RunDir.create(tmp_path / "a", TrainConfig())
    (tmp_path / "a" / "run.json").write_bytes(damaged)
    with pytest.raises(StoreError) as caught:
        RunDir.open(tmp_path / "a")
    assert caught.value.code == "corrupt_run"


def test_a_file_in_a_runs_place_holds_no_run(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(UsageError) as caught:
        RunDir.open(tmp_path / "a")
    assert caught.value.code == "no_run"

"""A whole run, real but for its two ends: the registry feeds it, episodes are verified, outcomes go back, it resumes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest

from envsdk.cli.app import run as envsdk
from envsdk.errors import EngineError, FaultyError
from envsdk.files.jsonl import read_rows
from registry.client import open_registry
from tests.fakes.models import write_model
from tests.fakes.runs import FakeEnds, install, parity_registry
from trainer.config import TrainConfig
from trainer.ledger import Ledger
from trainer.loop import RunResult, train
from trainer.model_folder import seen_in_training
from trainer.run_dir import RunDir
from trainer.uploader import Uploader


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeEnds:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_args, **_kwargs: tmp_path / "user")
    return install(monkeypatch, tmp_path)


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    return TrainConfig(
        query="family:parity",
        registry=parity_registry(tmp_path),
        steps=3,
        groups_per_step=2,
        group_size=4,
        checkpoint_every=2,
        concurrency=16,
    )


async def trained(config: TrainConfig, path: Path, *, resume: bool = False) -> RunResult:
    run = RunDir.open(path) if resume else RunDir.create(path, config)
    return await train(config, run)


async def test_a_run_ends_with_its_result_in_its_directory(ends: FakeEnds, config: TrainConfig, tmp_path: Path) -> None:
    result = await trained(config, tmp_path / "r")
    facts = RunDir.open(tmp_path / "r").facts
    assert (result.steps, facts["status"]) == (3, "done")
    assert 0 < result.reward_first < 1  # what had ended by then, half a group perhaps
    assert facts["task_set"].endswith("@1")
    assert ends.learner.updates == ends.engine.version == 3
    assert (tmp_path / "r" / "model" / "model.safetensors").exists()
    assert result.outcomes["model_success"] > 0


async def test_every_outcome_reaches_the_registry_once(ends: FakeEnds, config: TrainConfig, tmp_path: Path) -> None:
    await trained(config, tmp_path / "r")
    graded = [record for record in Ledger(tmp_path / "r").records() if record.outcome.graded]
    with open_registry(config.registry) as client:
        items = client.query("family:parity policy:fake").items
    assert sum(item.n for item in items) == len(graded)


async def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before_and_says_so(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    config = config.model_copy(update={"checkpoint_every": 1})
    await trained(config, tmp_path / "r")
    newest = tmp_path / "r" / "checkpoints" / "step-000003"
    state = newest / "loop.json"
    state.write_bytes(state.read_bytes().replace(b"3", b"4"))
    said: list[str] = []
    await train(config, RunDir.open(tmp_path / "r"), say=said.append)
    assert any("step-000003 is damaged: loop.json" in line for line in said)
    assert any("resuming after step 2" in line for line in said)
    assert [row["step"] for row in read_rows(tmp_path / "r" / "metrics.jsonl").rows] == [1, 2, 3]
    ended = Counter(record.episode_id for record in Ledger(tmp_path / "r").records())
    assert set(ended.values()) == {1}


async def test_a_second_run_of_the_same_name_is_counted_beside_the_first(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    for folder in ("one", "other"):
        await trained(config, tmp_path / folder / "r")
    graded = [
        record
        for folder in ("one", "other")
        for record in Ledger(tmp_path / folder / "r").records()
        if record.outcome.graded
    ]
    with open_registry(config.registry) as client:
        items = client.query("family:parity policy:fake").items
    assert sum(item.n for item in items) == len(graded)


async def test_nothing_of_a_run_is_refused_or_taken_for_anothers(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    said: list[str] = []
    for folder in ("one", "other"):
        await train(config, RunDir.create(tmp_path / folder / "r", config), say=said.append)
    assert not [line for line in said if "registry" in line]


async def test_what_a_killed_run_left_in_its_ledger_reaches_the_registry_on_resuming(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Uploader, "add", lambda self, record: None)
        await trained(config, tmp_path / "r")
    await trained(config.model_copy(update={"steps": 4}), tmp_path / "r", resume=True)
    graded = [record for record in Ledger(tmp_path / "r").records() if record.outcome.graded]
    with open_registry(config.registry) as client:
        items = client.query("family:parity policy:fake").items
    assert sum(item.n for item in items) == len(graded)


async def test_a_run_of_before_runs_had_ids_goes_on_with_the_ids_it_has(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    run = RunDir.create(tmp_path / "r", config)
    run.update(id=None)
    await train(config, run)
    await trained(config.model_copy(update={"steps": 4}), tmp_path / "r", resume=True)
    assert all(record.episode_id.startswith("g0") for record in Ledger(tmp_path / "r").records())


async def test_records_carry_tokens_versions_turns_and_times(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    await trained(config, tmp_path / "r")
    record = next(record for record in Ledger(tmp_path / "r").records() if record.outcome.graded)
    assert record.tokens is not None
    assert sum(record.tokens.loss_mask) == record.turns[0].generated_tokens == 2
    assert record.weight_version_oldest == record.tokens.versions[0].version
    assert {"dispatched", "first_token", "last_token", "verified"} <= set(record.stamps)
    assert record.family == "parity"


async def test_no_sandbox_is_started_for_tasks_that_need_none(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    await trained(config, tmp_path / "r")
    assert all(not record.sandbox for record in Ledger(tmp_path / "r").records())


async def test_a_longer_run_goes_on_where_a_shorter_one_ended(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    await trained(config, tmp_path / "r")
    first = ends.learner.history
    more = config.model_copy(update={"steps": 5})
    result = await trained(more, tmp_path / "r", resume=True)
    assert result.steps == 5
    assert ends.learner.updates == ends.engine.version == 5
    assert ends.learner.history != first
    assert [row["step"] for row in read_rows(tmp_path / "r" / "metrics.jsonl").rows] == [1, 2, 3, 4, 5]
    ended = Counter(record.episode_id for record in Ledger(tmp_path / "r").records())
    assert set(ended.values()) == {1}


async def test_the_trained_model_says_which_tasks_it_saw(ends: FakeEnds, config: TrainConfig, tmp_path: Path) -> None:
    await trained(config, tmp_path / "r")
    seen = seen_in_training(tmp_path / "r" / "model")
    assert seen
    assert seen == {record.task_digest for record in Ledger(tmp_path / "r").records()}


async def test_in_lock_step_a_trained_models_next_run_has_no_lag_nor_has_its_resume(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    (tmp_path / "model" / "envsdk.json").write_text('{"lineage": "fake", "weight_version": 30}')
    config = config.model_copy(update={"staleness": 0})
    ends.version = 30
    await trained(config, tmp_path / "r")
    await trained(config.model_copy(update={"steps": 5}), tmp_path / "r", resume=True)
    rows = read_rows(tmp_path / "r" / "metrics.jsonl").rows
    assert [row["version"] for row in rows] == [30, 31, 32, 33, 34]
    assert [row["lag/oldest"] for row in rows] == [0, 0, 0, 0, 0]


async def test_a_resumed_run_keeps_its_pinned_tasks_whatever_the_query_finds_by_then(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    await trained(config, tmp_path / "r")
    pinned = RunDir.open(tmp_path / "r").facts["task_set_digest"]
    other = config.model_copy(update={"steps": 4, "query": "family:parity limit:1"})
    await trained(other, tmp_path / "r", resume=True)
    assert RunDir.open(tmp_path / "r").facts["task_set_digest"] == pinned


async def test_a_failure_leaves_its_reason_and_nothing_running(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    nothing = config.model_copy(update={"query": "tag:nothing"})
    with pytest.raises(FaultyError):
        await trained(nothing, tmp_path / "r")
    facts = RunDir.open(tmp_path / "r").facts
    assert facts["status"] == "failed"
    assert "matches no task" in facts["why"]


async def test_an_interrupted_run_says_so_closes_what_it_started_and_can_be_resumed(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path
) -> None:
    work = asyncio.create_task(trained(config.model_copy(update={"steps": 50}), tmp_path / "r"))
    while ends.learner.updates < 2:  # noqa: ASYNC110 - the learner is a thread
        await asyncio.sleep(0.01)
    engine = ends.engine
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    facts = RunDir.open(tmp_path / "r").facts
    assert (facts["status"], facts["why"]) == ("interrupted", "interrupted")
    assert engine.closed
    assert Ledger(tmp_path / "r").open == {}
    more = config.model_copy(update={"steps": 20})
    assert (await trained(more, tmp_path / "r", resume=True)).steps == 20
    facts = RunDir.open(tmp_path / "r").facts
    assert (facts["status"], facts["why"]) == ("done", "")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_command_prints_one_envelope_and_says_how_to_go_on(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path, capsys
) -> None:
    def interrupt() -> None:
        while ends.learner.updates < 1:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    chosen = {"registry": config.registry, "groups_per_step": 2, "group_size": 4, "steps": 50}
    flags = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
    assert envsdk(["train", "--query", "family:parity", "--name", "r", *flags, "--json"]) == 130
    (line,) = capsys.readouterr().out.splitlines()
    (error,) = json.loads(line)["errors"]
    assert (error["code"], error["hint"]) == ("interrupted", "envsdk train --runs runs --name r --resume")
    assert envsdk(["train", "--name", "r", "--resume", "--steps", "2", "--json"]) == 0


async def test_weights_that_do_not_arrive_stop_the_run_before_its_first_episode(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(self, path, *, version):
        self._label = version

    monkeypatch.setattr(type(ends.engine), "load", stuck)
    with pytest.raises(EngineError, match="differ"):
        await trained(config, tmp_path / "r")
    assert Ledger(tmp_path / "r").ended == 0


def test_a_disk_that_cannot_hold_the_checkpoints_stops_the_command_before_its_engine_and_leaves_no_run(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    write_model(tmp_path / "model")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=100))
    before = ends.engine
    assert envsdk(["train", "--query", "family:parity", "--registry", config.registry, "--name", "r", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["errors"][0]["code"] == "disk_too_small"
    assert ends.engine is before
    assert not (tmp_path / "runs" / "r").exists()


def test_the_command_prints_one_envelope_and_its_lines_go_elsewhere(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path, capsys
) -> None:
    chosen = {"registry": config.registry, "groups_per_step": 2, "group_size": 4, "steps": 2}
    flags = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
    assert envsdk(["train", "--query", "family:parity", "--name", "r", *flags, "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["ok"]
    assert set(result) >= {"run_dir", "steps", "reward_first", "reward_last", "batch_s", "outcomes"}
    assert set(result["batch_s"]) == {"p50", "p95"}
    assert "step   2/2" in captured.err
    assert "rehearsed" in captured.err


def test_the_command_resumes_with_the_settings_the_run_was_made_with(
    ends: FakeEnds, config: TrainConfig, tmp_path: Path, capsys
) -> None:
    RunDir.create(tmp_path / "runs" / "r", config)
    assert envsdk(["train", "--name", "r", "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 3

"""``envsdk eval`` on a fake engine: real registry, real episodes, real verifiers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import envsdk.sandboxes
from envsdk.cli.app import run as envsdk_command
from envsdk.episode.record import EpisodeRecord
from envsdk.files.jsonl import read_rows
from registry.client import open_registry
from tests.fakes.engine import END, FakeEngine
from tests.fakes.runs import fake_policy, parity_registry
from tests.fakes.sandbox import FakeProvider
from trainer import models
from trainer.engines import policy


class Bench:
    """The engine and the registry that the command will find."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.registry = parity_registry(folder)
        self.engine = FakeEngine(reply=self.answer, max_model_len=4096)
        self.options: dict = {}
        self.model = folder / "model"
        self.model.mkdir()
        monkeypatch.setattr(policy, "open_policy", self.open)
        monkeypatch.setattr(models, "resolve_model", lambda _name, progress: self.model)
        monkeypatch.setattr(envsdk.sandboxes, "open_provider", lambda _name: FakeProvider())

    def answer(self, request) -> tuple[int, ...]:
        place = int(request.request_id.rsplit("-", 1)[1].split(".")[0])
        return (11, END) if place == 0 else (3, END)

    def open(self, model: str, **options):
        self.options = {"model": model, **options}
        return fake_policy(self.engine)

    def run(self, *more: str) -> int:
        return envsdk_command(["eval", "--registry", self.registry, "--json", *more])


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(monkeypatch, tmp_path)


def result(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_a_query_gives_rate_interval_n_and_coverage(bench: Bench, capsys) -> None:
    assert bench.run("--query", "family:parity", "-n", "4") == 0
    found = result(capsys)
    assert (found["pass_rate"], found["n"], found["tasks"], found["coverage"]) == (0.25, 24, 6, 1.0)
    assert found["low"] < 0.25 < found["high"]
    assert found["families"]["parity"]["n"] == 24
    assert found["set"].endswith("@1")


def test_a_set_by_name_and_revision_is_what_a_query_pinned(bench: Bench, capsys) -> None:
    with open_registry(bench.registry) as client:
        client.resolve("family:parity", name="held-out")
    assert bench.run("--set", "held-out@1", "-n", "1") == 0
    assert result(capsys)["set"] == "held-out@1"


def test_a_limit_takes_the_first_tasks(bench: Bench, capsys) -> None:
    assert bench.run("--query", "family:parity", "-n", "1", "--limit", "2") == 0
    assert result(capsys)["tasks"] == 2


def test_episodes_are_kept_where_told_and_never_over_others(bench: Bench, capsys, tmp_path: Path) -> None:
    out = tmp_path / "episodes.jsonl"
    assert bench.run("--query", "family:parity", "-n", "2", "--out", str(out)) == 0
    records = [EpisodeRecord.model_validate(row) for row in read_rows(out).rows]
    assert len({record.episode_id for record in records}) == len(records) == 12
    capsys.readouterr()
    assert bench.run("--query", "family:parity", "--out", str(out)) == 2
    assert result(capsys)["errors"][0]["code"] == "file_exists"


def test_the_model_and_the_sampling_are_those_asked_for(bench: Bench, capsys) -> None:
    bench.run("--query", "family:parity", "-n", "1", "--model", "tiny", "--temperature", "0.5", "--concurrency", "3")
    capsys.readouterr()
    assert bench.options == {"model": "tiny", "temperature": 0.5, "max_concurrent": 3}


def test_attempts_at_a_task_have_seeds_of_their_own_and_the_same_ones_next_time(bench: Bench, capsys) -> None:
    seeds = []
    for _ in range(2):
        bench.engine.requests.clear()
        bench.engine.closed = False
        bench.run("--query", "family:parity", "-n", "3", "--seed", "5")
        asked = {
            request.request_id.partition("-")[2].partition("-")[2]: request.seed for request in bench.engine.requests
        }
        seeds.append(asked)
    capsys.readouterr()
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0].values())) == 18


def trained(bench: Bench, **more: object) -> None:
    said = {"lineage": "fake", "weight_version": 3, **more}
    (bench.model / "envsdk.json").write_text(json.dumps(said))


def test_a_model_that_was_never_trained_here_saw_no_task(bench: Bench, capsys) -> None:
    assert bench.run("--query", "family:parity", "-n", "1") == 0
    assert result(capsys)["seen_in_training"] == 0


def test_tasks_that_the_model_was_trained_on_are_counted_and_said(bench: Bench, capsys) -> None:
    with open_registry(bench.registry) as client:
        digests = [item.task_digest for item in client.query("family:parity").items]
    trained(bench, trained_on=[*digests[:2], "f" * 64])
    assert bench.run("--query", "family:parity", "-n", "1") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["seen_in_training"] == 2
    assert "trained on 2 of these 6 tasks" in printed.err


def test_a_model_that_does_not_say_what_it_was_trained_on_is_not_called_innocent(bench: Bench, capsys) -> None:
    trained(bench)
    assert bench.run("--query", "family:parity", "-n", "1") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["seen_in_training"] is None
    assert "does not say" in printed.err


def test_an_engine_that_fails_enters_no_rate_and_is_said_to_have_failed(bench: Bench, capsys) -> None:
    bench.engine.fail.add("generate")
    assert bench.run("--query", "family:parity", "-n", "1") == 4
    found = result(capsys)
    assert (found["pass_rate"], found["n"], found["coverage"]) == (None, 0, 0.0)
    [error] = found["errors"]
    assert error["code"] == "nothing_scored"
    assert "none of 6 episodes could be scored: 6 inference_error" in error["message"]


def test_for_a_person_it_is_a_few_lines(bench: Bench, capsys) -> None:
    command = ["eval", "--registry", bench.registry, "--query", "family:parity", "-n", "4"]
    assert envsdk_command(command) == 0
    text = capsys.readouterr().out
    assert "25.0 %" in text
    assert "coverage 100 %" in text
    assert "parity" in text

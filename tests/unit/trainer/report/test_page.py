"""The report's page over runs of fakes: complete, offline, escaped, and there for unfinished runs too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from envsdk.episode.record import Turn
from envsdk.errors import UsageError
from tests.fakes.episodes import ENGINE_500, FakeEpisodes
from tests.fakes.learner import fake_run, luck
from trainer.config import TrainConfig
from trainer.loop import run_steps
from trainer.report.data import read
from trainer.report.page import render
from trainer.run_dir import RunDir


@pytest.fixture
async def finished(tmp_path: Path) -> Path:
    class Talking(FakeEpisodes):
        async def run(self, member):
            record = await super().run(member)
            return record.model_copy(update={"turns": (Turn(reply="<b>rm & run</b>", observation="ok"),)})

    def facts(member):
        return ENGINE_500 if member.draw.order == 1 and member.attempt == 0 else luck(member)

    run = await fake_run(tmp_path, episodes=Talking(facts), steps=3)
    await run_steps(run.parts)
    run.close()
    return tmp_path


async def test_it_shows_every_part_of_the_run(finished: Path) -> None:
    page = render(read(finished), path=finished)
    for heading in (
        "Who waits for whom",
        "Learning",
        "Time to trainable batch",
        "How episodes ended",
        "Episodes to read",
    ):
        assert heading in page
    assert "inference_error" in page
    assert page.count("<svg") >= 7


async def test_it_loads_nothing_and_runs_nothing(finished: Path) -> None:
    page = render(read(finished), path=finished)
    assert not re.search(r"<script|https?://|<link|@import|url\(", page)


async def test_what_a_model_wrote_is_shown_as_text(finished: Path) -> None:
    page = render(read(finished), path=finished)
    assert "<b>rm" not in page
    assert "&lt;b&gt;rm &amp; run&lt;/b&gt;" in page


async def test_the_lag_of_the_whole_run_is_there(finished: Path) -> None:
    lags = read(finished).lags
    assert sum(lags.values()) == 3 * 2 * 2 * 2
    assert lags[1] > 0


async def test_evaluations_beside_the_run_are_compared(finished: Path) -> None:
    result = {"set": "held@1", "pass_rate": 0.25, "low": 0.2, "high": 0.3, "n": 256, "tasks": 64, "coverage": 1.0}
    (finished / "eval-before.json").write_text(json.dumps(result))
    page = render(read(finished), path=finished)
    assert "25.0 %" in page
    assert "20.0 % to 30.0 %" in page


async def test_a_run_that_has_not_trained_yet_has_a_page(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "new", TrainConfig())
    page = render(read(run.path), path=run.path)
    assert "not enough data" in page
    assert "No episode has ended yet" in page


async def test_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run"):
        read(tmp_path / "nowhere")

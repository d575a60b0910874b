"""The report's page over runs of fakes: complete, offline, escaped, and there for unfinished runs too."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from envsdk.episode.record import Turn
from envsdk.errors import StoreError, UsageError
from envsdk.files.jsonl import append_row
from tests.fakes.episodes import ENGINE_500, FakeEpisodes, make_draw, make_record, scored
from tests.fakes.learner import fake_run, luck
from trainer.config import TrainConfig
from trainer.group import Member
from trainer.loop import run_steps
from trainer.report.data import read
from trainer.report.page import render
from trainer.run_dir import RunDir


@pytest.fixture
async def finished(tmp_path: Path) -> Path:
    class Talking(FakeEpisodes):
        async def run(self, member, grading):
            record = await super().run(member, grading)
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


async def test_what_the_scheduler_gave_up_is_told_apart_in_the_coverage(finished: Path) -> None:
    data = read(finished)
    ended = dataclasses.replace(
        data, outcomes={"model_success": 90, "infra_failure": 10}, causes=[cause("given_up", 10)]
    )
    page = render(ended, path=finished)
    assert "90.0 %" in page
    assert "coverage: episodes that were scored; 100.0 % without the 10 that the scheduler gave up" in page
    broken = dataclasses.replace(ended, causes=[cause("inference_error", 10)])
    assert "that the scheduler gave up" not in render(broken, path=finished)


def cause(name: str, count: int) -> dict[str, object]:
    return {"cause": name, "side": "infra", "sentence": "", "action": "", "count": count, "share": 0.1}


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


def evaluated(path: Path, rewards: list[float], *, family: str = "fake") -> Path:
    for number, reward in enumerate(rewards):
        made = make_record(Member(make_draw(number), 0, 0), scored(reward)).model_copy(update={"family": family})
        append_row(path, made.model_dump(mode="json"))
    return path


async def test_evaluations_are_compared_with_their_intervals(finished: Path, tmp_path: Path) -> None:
    before = evaluated(tmp_path / "before.jsonl", [1.0, 0.0, 0.0, 0.0])
    after = evaluated(tmp_path / "after.jsonl", [1.0, 1.0, 1.0, 0.0])
    page = render(read(finished, evals={"before": before, "after": after}), path=finished)
    assert "Before and after" in page
    assert "25.0 %" in page
    assert "75.0 %" in page


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([0.0] * 30, [1.0] * 30, "Pass rate 0.0 % before, 100.0 % after; the 95 % intervals are apart."),
        ([1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], "the 95 % intervals overlap: no difference is shown."),
    ],
)
async def test_it_says_first_whether_a_difference_is_shown(
    finished: Path, tmp_path: Path, before: list[float], after: list[float], said: str
) -> None:
    evals = {"before": evaluated(tmp_path / "one", before), "after": evaluated(tmp_path / "two", after)}
    page = render(read(finished, evals=evals), path=finished)
    assert said in page.split('<div class="tiles">')[0]


async def test_one_evaluation_is_compared_with_nothing(finished: Path, tmp_path: Path) -> None:
    page = render(read(finished, evals={"now": evaluated(tmp_path / "one", [1.0])}), path=finished)
    assert 'class="headline"' not in page


async def test_an_episode_without_a_reward_is_named_by_its_cause(finished: Path) -> None:
    page = render(read(finished), path=finished)
    summaries = [line for line in page.splitlines() if line.startswith("<summary>infra failure")]
    assert any('class="infra">inference error<' in line for line in summaries)
    assert not any('class="infra">infra failure<' in line for line in summaries)


async def test_an_evaluation_of_several_families_is_told_by_family(finished: Path, tmp_path: Path) -> None:
    mixed = evaluated(tmp_path / "mixed.jsonl", [1.0, 1.0], family="easy")
    evaluated(mixed, [0.0], family="hard")
    page = render(read(finished, evals={"now": mixed}), path=finished)
    assert "now: easy" in page
    assert "now: hard" in page


async def test_an_evaluation_that_is_not_there_is_an_error(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    for name in ("nowhere.jsonl", "empty.jsonl"):
        with pytest.raises(StoreError) as caught:
            read(finished, evals={"before": tmp_path / name})
        assert caught.value.code == "no_episodes"


async def test_a_run_that_has_not_trained_yet_has_a_page(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "new", TrainConfig())
    page = render(read(run.path), path=run.path)
    assert "not enough data" in page
    assert "No episode has ended yet" in page


async def test_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.jsonl"])
async def test_a_file_that_a_trained_run_has_lost_is_an_error_not_an_empty_chart(finished: Path, name: str) -> None:
    (finished / name).unlink()
    with pytest.raises(StoreError, match="gone") as caught:
        read(finished)
    assert (caught.value.code, caught.value.where) == ("corrupt_run", str(finished / name))


@pytest.mark.parametrize("row", ["{}", '{"step": "x"}', '{"who": 5}', '{"episode_id": []}', '{"episode_id": "a"}'])
@pytest.mark.parametrize("name", ["metrics.jsonl", "episodes.jsonl", "timeline.jsonl"])
async def test_a_row_that_no_run_wrote_is_an_error_that_names_its_file(finished: Path, name: str, row: str) -> None:
    with (finished / name).open("a") as file:
        file.write(f"{row}\n")
    with pytest.raises(StoreError) as caught:
        read(finished)
    assert (caught.value.code, caught.value.where) == ("corrupt_row", str(finished / name))


async def test_an_evaluation_of_other_rows_is_an_error(finished: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{}\n")
    with pytest.raises(StoreError) as caught:
        read(finished, evals={"before": rows})
    assert (caught.value.code, caught.value.where) == ("corrupt_row", str(rows))

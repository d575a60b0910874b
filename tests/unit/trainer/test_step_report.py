"""A step's metrics: lag per token, means without what was not scored, and a line a person can read."""

from __future__ import annotations

import json

from tests.fakes.episodes import ENGINE_500, make_draw, make_group, make_record, scored
from trainer.activity import Totals
from trainer.clock import batch_timing
from trainer.dispatch import DispatchCounts
from trainer.group import Member
from trainer.probe import Reading
from trainer.step_report import console_line, lag_histogram, step_row, summarise, whole_lag_histogram
from trainer.weights import Publication


def row(groups=None, launched=(), publication=None) -> dict:
    groups = groups or [make_group(0), make_group(1, version=2)]
    return step_row(
        step=3,
        version=2,
        groups=groups,
        launched=launched,
        learner={"loss": 0.5},
        timing=batch_timing(groups, previous_handover=0.0, asked_at=0.0, taken_at=2.0, packed_at=2.5),
        activity=Totals(wall_s=5.0, engine_busy_s=4.0, learner_busy_s=2.0, overlap_s=1.0),
        publication=publication,
        counts=DispatchCounts(),
    )


def test_lag_is_counted_per_trained_token() -> None:
    assert row()["lag/tokens"] == {"0": 4, "2": 4}
    assert row()["lag/oldest"] == 2
    assert row()["lag/mean"] == 1.0


def test_tokens_out_of_the_gradient_have_no_lag() -> None:
    broken = make_record(Member(make_draw(), 0, 0), ENGINE_500)
    assert lag_histogram([broken], version=5) == {}


def test_what_was_not_scored_enters_no_mean_and_lowers_the_coverage() -> None:
    launched = [
        make_record(Member(make_draw(), 0, 0), scored(1.0)),
        make_record(Member(make_draw(), 1, 0), ENGINE_500),
    ]
    found = row(launched=launched)
    assert found["launched/reward_mean"] == 1.0
    assert found["launched/coverage"] == 0.5


def test_nothing_launched_has_no_mean() -> None:
    assert row()["launched/reward_mean"] is None


def test_a_row_is_json_and_the_line_says_the_main_things() -> None:
    reading = Reading("0", 3, 0.05, 0.2, 40)
    found = row(publication=Publication(3, 0.1, 0.2, 0.3, (reading,)))
    json.dumps(found, allow_nan=False)
    line = console_line(found, steps=9)
    assert "step   3/9" in line
    assert "mismatch 0.050" in line
    assert "overlap 50%" in line
    assert "\n" not in line


def test_lag_of_a_run_adds_up_that_of_its_steps_as_they_are_written_down() -> None:
    rows = [json.loads(json.dumps(row())), json.loads(json.dumps(row()))]
    whole = whole_lag_histogram(rows)
    assert whole == {int(lag): 2 * tokens for lag, tokens in rows[0]["lag/tokens"].items()}
    assert list(whole) == sorted(whole)
    assert whole_lag_histogram([]) == {}


def test_a_run_is_summed_up_by_launched_rewards_and_percentiles() -> None:
    rows = [
        {"launched/reward_mean": reward, "time/t2tb_s": seconds} for reward, seconds in [(0.1, 4), (None, 2), (0.3, 6)]
    ]
    assert summarise(rows) == {"steps": 3, "reward_first": 0.1, "reward_last": 0.3, "batch_s": {"p50": 4, "p95": 5.8}}
    assert summarise([])["reward_first"] is None

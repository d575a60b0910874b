"""The demonstration's figures are sums over its steps, not of the last one."""

import json
from pathlib import Path

import pytest

from benchmarks import demonstration
from trainer.clock import PHASES


def _step(
    number: int, *, lag: dict[str, int], overlap_s: float = 5.0, step_s: float = 10.0, t2tb_s: float = 1.0
) -> dict:
    parts = {f"time/t2tb_{part}_s": 0.0 for part in PHASES} | {"time/t2tb_decode_s": t2tb_s}
    return {
        **parts,
        "step": number,
        "lag/tokens": lag,
        "time/overlap_s": overlap_s,
        "time/step_s": step_s,
        "time/t2tb_s": t2tb_s,
        "sync/mismatch": 0.05 + number / 100,
        "launched/coverage": 1.0,
        "learner/shared_prefix_gain": 4.0,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "runs" / "train"
    run.mkdir(parents=True)
    steps = [_step(1, lag={"0": 10}, overlap_s=0.0), _step(2, lag={"0": 5, "1": 25}, overlap_s=10.0, t2tb_s=3.0)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    (run / "run.json").write_text(json.dumps({"mismatch_baseline": 0.05}))
    rate = {"pass_rate": 0.25, "low": 0.2, "high": 0.3, "n": 256, "tasks": 64}
    results = {
        "before": rate,
        "after": {**rate, "pass_rate": 0.5, "low": 0.4, "high": 0.6},
        "train": {"run_dir": str(run), "outcomes": {"model_success": 30, "model_failure": 34}},
    }
    (tmp_path / "done").mkdir()
    for stage, envelope in results.items():
        (tmp_path / "done" / f"{stage}.json").write_text(json.dumps({"commands": [], "envelopes": [envelope]}))
    return tmp_path


def test_lag_is_counted_over_the_whole_run(folder: Path) -> None:
    assert demonstration.figures(folder)["lag_tokens"] == {0: 15, 1: 25}


def test_overlap_is_a_share_of_all_steps_time(folder: Path) -> None:
    assert demonstration.figures(folder)["overlap"] == pytest.approx(0.5)


def test_mismatch_begins_with_the_baseline(folder: Path) -> None:
    assert demonstration.figures(folder)["mismatch"] == pytest.approx([0.05, 0.06, 0.07])


def test_the_table_shows_both_rates_with_their_intervals(folder: Path) -> None:
    table = demonstration.markdown(demonstration.figures(folder))
    assert "25.0 % (95 % interval 20.0 to 30.0; 256 episodes of 64 tasks)" in table
    assert "50.0 % (95 % interval 40.0 to 60.0; 256 episodes of 64 tasks)" in table


def test_the_critical_path_leaves_out_what_took_no_time(folder: Path) -> None:
    table = demonstration.markdown(demonstration.figures(folder))
    assert "decode 2.00" in table
    assert "verify" not in table

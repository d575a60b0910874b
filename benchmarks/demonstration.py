"""The figures of a finished demonstration: what was learned, lag, overlap, time to trainable batch, mismatch, outcomes.

    python benchmarks/demonstration.py [--folder demo] [--json]

Reads what `make demo` left behind and runs nothing. Every number is of one run on the machine at hand; intervals are
clustered by task.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from envsdk.files.jsonl import read_rows
from trainer.clock import PHASES, percentile
from trainer.run_dir import METRICS
from trainer.step_report import whole_lag_histogram

Row = dict[str, Any]


def last_envelope(folder: Path, stage: str) -> Row:
    """What the last command of a finished stage printed."""
    done = json.loads((folder / "done" / f"{stage}.json").read_text(encoding="utf-8"))
    return dict(done["envelopes"][-1])


def overlap(steps: list[Row]) -> float:
    """Share of the steps' time in which an engine generated while the learner computed."""
    return float(sum(step["time/overlap_s"] for step in steps) / sum(step["time/step_s"] for step in steps))


def batch_times(steps: list[Row]) -> Row:
    """Percentiles of the time to trainable batch, and the mean of each part of its critical path, in seconds."""
    times = [step["time/t2tb_s"] for step in steps]
    parts = {part: statistics.fmean(step[f"time/t2tb_{part}_s"] for step in steps) for part in PHASES}
    return {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95), "parts": parts}


def figures(folder: Path) -> Row:
    """Everything, as data."""
    before, train, after = (last_envelope(folder, stage) for stage in ("before", "train", "after"))
    run = Path(train["run_dir"])
    steps = read_rows(run / METRICS).rows
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return {
        "before": before,
        "after": after,
        "steps": len(steps),
        "lag_tokens": whole_lag_histogram(steps),
        "overlap": overlap(steps),
        "batch_s": batch_times(steps),
        "mismatch": [facts["mismatch_baseline"], *(step["sync/mismatch"] for step in steps)],
        "coverage": statistics.fmean(step["launched/coverage"] for step in steps),
        "prefix_gain": statistics.fmean(step["learner/shared_prefix_gain"] for step in steps),
        "outcomes": train["outcomes"],
    }


def markdown(found: Row) -> str:
    """The figures as a table."""
    total = sum(found["lag_tokens"].values())
    lag = ", ".join(f"{lag}: {100 * number / total:.0f} %" for lag, number in found["lag_tokens"].items())
    parts = ", ".join(f"{part} {s:.2f}" for part, s in found["batch_s"]["parts"].items() if s >= 0.005)
    mismatch = ", ".join(f"{value:.4f}" for value in found["mismatch"][:3])
    rows = [
        ("held-out pass rate before", rate(found["before"])),
        ("held-out pass rate after", rate(found["after"])),
        ("optimizer steps", str(found["steps"])),
        ("trained tokens by lag, in weight versions", lag),
        ("generation and training at once, share of the time", f"{100 * found['overlap']:.0f} %"),
        ("time to trainable batch, p50 and p95", "{p50:.1f} s, {p95:.1f} s".format(**found["batch_s"])),
        ("its critical path, mean seconds", parts),
        ("engine against learner before any sync, after the first, after the second (nats a token)", mismatch),
        ("scored of all episodes", f"{100 * found['coverage']:.1f} %"),
        ("learner's tokens saved by computing prefixes once", f"{found['prefix_gain']:.1f} times fewer"),
        ("outcomes", ", ".join(f"{name} {number}" for name, number in found["outcomes"].items())),
    ]
    return "\n".join(["| figure | measured |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def rate(found: Row) -> str:
    """A pass rate with its interval and what it is of."""
    percent = {key: 100 * found[key] for key in ("pass_rate", "low", "high")}
    return "{pass_rate:.1f} % (95 % interval {low:.1f} to {high:.1f}".format(**percent) + (
        f"; {found['n']} episodes of {found['tasks']} tasks)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the figures of a finished demonstration.")
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parents[1] / "demo")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    told = figures(given.folder)
    print(json.dumps(told) if given.json else markdown(told))

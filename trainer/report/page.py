"""The report's page: the run's figures, its charts, and episodes to read, as one HTML document.

Promises: it loads nothing and runs nothing; what a model wrote is shown as text; a number that was not measured is a
dash, never 0. What is read is `trainer.report.data`, how a chart is drawn `trainer.report.charts`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from envsdk.episode.record import EpisodeRecord
from trainer.clock import PHASES, percentile
from trainer.report.charts import Bar, Line, histogram, line_chart, stacked_bars, timeline
from trainer.report.data import ReportData

_WORK = ("wait", "pack", "train", "publish", "checkpoint", "acquire", "generate", "verify")
_MOST_LANES = 24
_WINDOW_S = 240.0


def render(data: ReportData, *, path: Path) -> str:
    """The page of a run; unfinished runs and empty ones have a page too."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(
        files("trainer.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    )
    facts = dict(data.facts)
    if "started" in facts:
        facts["started_at"] = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(facts["started"]))
    return template.render(
        name=path.name,
        path=path,
        facts=facts,
        headline=_headline(data),
        tiles=_tiles(data),
        evals=_evals(data),
        charts={name: Markup(chart) for name, chart in _charts(data).items()},
        phases=_phases(data),
        composition=_composition(data),
        ended=sum(data.outcomes.values()),
        causes=data.causes,
        episodes=data.episodes,
        facts_shown=_shown(facts),
        percent=percent,
        mood=_mood,
        verdict=_verdict,
    )


def percent(value: float | None) -> str:
    """A share as a person reads it; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.1f} %"


def _headline(data: ReportData) -> str:
    """What the run was for, where it was evaluated twice: the first evaluation against the last."""
    if len(data.evals) < 2:
        return ""
    (one, first), *_, (two, last) = data.evals.items()
    before, after = first.overall, last.overall
    if before.rate is None or after.rate is None:
        return f"{one if before.rate is None else two}: nothing was scored, so nothing can be compared."
    rates = f"Pass rate {percent(before.rate)} {one}, {percent(after.rate)} {two}"
    if None in {before.low, before.high, after.low, after.high}:
        return f"{rates}; too few tasks for an interval."
    apart = max(before.low or 0.0, after.low or 0.0) > min(before.high or 0.0, after.high or 0.0)
    return f"{rates}; the 95 % intervals {'are apart' if apart else 'overlap: no difference is shown'}."


def _evals(data: ReportData) -> list[dict[str, Any]]:
    """A row for each evaluation, and under it one for each family where there are several."""
    rows: list[dict[str, Any]] = []
    for name, found in data.evals.items():
        rows.append({"name": name, "rate": found.overall, "coverage": found.coverage})
        if len(found.families) > 1:
            rows += [{"name": f"{name}: {f}", "rate": rate, "coverage": None} for f, rate in found.families.items()]
    return rows


def _tiles(data: ReportData) -> list[dict[str, str]]:
    steps = data.steps
    rewards = _column(steps, "launched/reward_mean")
    known = [reward for reward in rewards if reward is not None]
    seconds = [row["time/t2tb_s"] for row in steps]
    busy = sum(row["time/learner_busy_s"] for row in steps)
    overlap = sum(row["time/overlap_s"] for row in steps)
    prompts = sum(row["engine/prompt_tokens"] for row in steps)
    hits = sum(row["engine/prefix_hit_tokens"] for row in steps)
    tokens = sum(data.lags.values())
    lag = sum(lag * count for lag, count in data.lags.items()) / tokens if tokens else None
    scored = sum(data.outcomes.get(kind, 0) for kind in ("model_success", "model_failure"))
    ended = sum(data.outcomes.values())
    tiles = [
        (f"{known[0]:.2f} to {known[-1]:.2f}" if known else "-", "mean reward, first to last step"),
        (str(len(steps)), "optimizer steps"),
        (f"{percentile(seconds, 0.5):.1f} s", "time to trainable batch, median"),
        (f"{percentile(seconds, 0.95):.1f} s", "time to trainable batch, 95th percentile"),
        (percent(overlap / busy if busy else None), "of learning overlapped with generating"),
        ("-" if lag is None else f"{lag:.2f}", "mean lag of a trained token, versions"),
        (percent(hits / prompts if prompts else None), "of prompt tokens found in the prefix cache"),
        (percent(scored / ended if ended else None), _coverage_label(data, scored=scored, ended=ended)),
    ]
    return [{"value": value, "label": label} for value, label in tiles]


def _coverage_label(data: ReportData, *, scored: int, ended: int) -> str:
    """Says apart what the scheduler gave up, as it does with what is in flight when a run has its last step."""
    label = "coverage: episodes that were scored"
    given_up = sum(row["count"] for row in data.causes if row["cause"] == "given_up")
    if not given_up:
        return label
    needed = ended - given_up
    return f"{label}; {percent(scored / needed if needed else None)} without the {given_up} that the scheduler gave up"


def _charts(data: ReportData) -> dict[str, str]:
    steps = data.steps
    numbers = [row["step"] for row in steps]
    baseline = data.facts.get("mismatch_baseline")
    mismatch = [Line("mean difference on the probe", _points(steps, "sync/mismatch"))]
    if baseline is not None:
        mismatch += [
            Line("before any update", [(n, baseline) for n in numbers], dashed=True),
            Line("refused above", [(n, 2 * baseline) for n in numbers], dashed=True),
        ]
    phases = {phase: [row[f"time/t2tb_{phase}_s"] for row in steps] for phase in PHASES}
    return {
        "timeline": _timeline(data),
        "reward": line_chart(
            "Reward by step",
            [
                Line("launched", _points(steps, "launched/reward_mean")),
                Line("trained", _points(steps, "batch/reward_mean")),
            ],
            low=0.0,
        ),
        "lag": histogram("Trained tokens by lag", {str(lag): n for lag, n in data.lags.items()}, unit=""),
        "mismatch": line_chart("Mismatch by step", mismatch, low=0.0),
        "gradient": line_chart("Gradient norm by step", [Line("norm", _points(steps, "learner/grad_norm"))], low=0.0),
        "t2tb": stacked_bars("Time to trainable batch by step", numbers, phases),
        "busy": line_chart(
            "Busy seconds by step",
            [
                Line("engine busy", _points(steps, "time/engine_busy_s")),
                Line("learner busy", _points(steps, "time/learner_busy_s")),
                Line("learner waits for a batch", _points(steps, "time/learner_wait_s")),
                Line("engine idle, episodes in their environment", _points(steps, "time/engine_idle_env_s")),
            ],
            low=0.0,
        ),
    }


def _timeline(data: ReportData) -> str:
    """The learner's lane, and under it as many as there were episodes at once, over the run's last minutes."""
    end = max((bar["end"] for bar in data.bars), default=0.0)
    start = max(0.0, end - _WINDOW_S)
    lanes: dict[str, list[Bar]] = {"learner": []}
    episodes: dict[str, list[Bar]] = {}
    for row in data.bars:
        what = f"step {row['step']}" if row["who"] == "learner" else row["id"]
        bar = Bar(
            row["start"], row["end"], row["what"], f"{row['what']}, {what}: {row['start']:.1f}-{row['end']:.1f} s"
        )
        if row["end"] >= start:
            (lanes["learner"] if row["who"] == "learner" else episodes.setdefault(row["id"], [])).append(bar)
    lanes |= _slots(list(episodes.values()))
    return timeline("Timeline of the run", lanes, kinds=_WORK, start=start, end=end)


def _slots(episodes: list[list[Bar]]) -> dict[str, list[Bar]]:
    """Lay episodes into the fewest lanes without overlap; what finds no room in the most that are drawn is left out."""
    free: list[float] = []
    lanes: list[list[Bar]] = []
    for bars in sorted(episodes, key=lambda bars: bars[0].start):
        lane = next((number for number, until in enumerate(free) if until <= bars[0].start), len(free))
        if lane >= _MOST_LANES:
            continue
        if lane == len(free):
            free.append(0.0)
            lanes.append([])
        free[lane] = bars[-1].end
        lanes[lane] += bars
    return {f"episodes {number + 1}": bars for number, bars in enumerate(lanes)}


def _phases(data: ReportData) -> list[dict[str, Any]]:
    count = max(1, len(data.steps))
    seconds = {phase: sum(row[f"time/t2tb_{phase}_s"] for row in data.steps) / count for phase in PHASES}
    total = sum(seconds.values())
    return [{"name": p, "seconds": s, "share": s / total if total else None} for p, s in seconds.items()]


def _composition(data: ReportData) -> list[dict[str, str]]:
    rows: list[tuple[str, str, Callable[[float | None], str]]] = [
        ("pass rate", "pass_rate", percent),
        ("coverage", "coverage", percent),
        ("seconds an episode", "seconds_mean", lambda value: "-" if value is None else f"{value:.1f}"),
    ]
    table = [
        {
            "name": name,
            "kept": shown(_mean(_column(data.steps, f"batch/{key}"))),
            "launched": shown(_mean(_column(data.steps, f"launched/{key}"))),
        }
        for name, key, shown in rows
    ]
    kept, launched = (_families(data.steps, f"{which}/families") for which in ("batch", "launched"))
    return table + [
        {"name": f"family {name}", "kept": percent(kept.get(name, 0.0)), "launched": percent(share)}
        for name, share in launched.items()
    ]


def _families(steps: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    counts: dict[str, int] = {}
    for row in steps:
        for name, count in row[key].items():
            counts[name] = counts.get(name, 0) + count
    total = sum(counts.values())
    return {name: count / total for name, count in sorted(counts.items())}


def _column(steps: Sequence[Mapping[str, Any]], key: str) -> list[float | None]:
    return [row.get(key) for row in steps]


def _points(steps: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float | None]]:
    return [(row["step"], row.get(key)) for row in steps]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _shown(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = ("task_set", "task_set_digest", "seed", "command", "versions", "git", "hardware", "python")
    return [(name, _flat(facts[name])) for name in names if facts.get(name)]


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _mood(record: EpisodeRecord) -> str:
    return {"model_success": "pass", "model_failure": "fail"}.get(record.outcome.outcome_class, "infra")


def _verdict(record: EpisodeRecord) -> str:
    reward = record.outcome.reward
    return record.outcome.cause.replace("_", " ") if reward is None else f"reward {reward:g}"

"""The registry's statistics: fits, screening, retirements, predictions; each figure with its bar.

Real outcomes (``--data``: a folder of public response tables) are used where they are given; the rest is simulated
from known truth, with fixed seeds.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special

from registry.calibration.rasch import Responses, fit_rasch
from registry.calibration.responses import read_responses
from registry.refresh.levels import Seen, fit_levels
from registry.saturation.posterior import DEFAULT_PRIOR, Regions, regions, updated
from registry.saturation.screening import AT_MOST, CERTAIN, screen
from registry.saturation.states import Track, step


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure; ``bar`` is what it must meet, ``met`` whether it does."""

    figure: str
    value: str
    bar: str
    met: bool


def fit_speed(data: Path | None) -> Iterator[Row]:
    """Seconds for a real table of 400 tasks x 72 policies, and for a simulated one of 10,000 x 200."""
    if data is not None:
        table = read_responses(data / "livecodebench_codegen_responses.csv")
        widest = np.argsort(-(table.responses.trials > 0).sum(axis=0), kind="stable")[:400]
        real = Responses(table.responses.passes[:, widest], table.responses.trials[:, widest])
        seconds, fit = _timed(real)
        yield Row(
            f"fit of {real.trials.shape[1]} tasks x {real.trials.shape[0]} policies (real)",
            f"{seconds:.2f} s (m = {fit:.3f})",
            "<= 1.5 s",
            seconds <= 1.5,
        )
    rng = np.random.default_rng(0)
    theta, b = rng.normal(0, 1.5, 200), rng.normal(0, 2, 10_000)
    pi = special.expit(theta[:, None] - b[None, :])
    passes = rng.binomial(8, rng.beta(np.maximum(pi, 1e-9), np.maximum(1 - pi, 1e-9))).astype(float)
    seconds, fit = _timed(Responses(passes, np.full(passes.shape, 8.0)))
    yield Row(
        "fit of 10,000 tasks x 200 policies (simulated)", f"{seconds:.1f} s (m = {fit:.3f})", "<= 30 s", seconds <= 30
    )


def _timed(table: Responses) -> tuple[float, float]:
    began = time.perf_counter()
    fit = fit_rasch(table)
    return time.perf_counter() - began, fit.m


def screening(data: Path) -> Iterator[Row]:
    """Episodes of screening against a fixed 32, both judged by the class that all of a cell's trials speak for."""
    rng = np.random.default_rng(1)
    used, right_screened, right_fixed, certain, certain_right = [], [], [], [], []
    fewer: dict[int, list[bool]] = {16: [], 24: [], 28: []}
    with (data / "reasoning_gym_responses.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            trials, passes = int(row["trials"]), int(row["passes"])
            if trials < 50:
                continue
            truth = likeliest(_regions(passes, trials))
            outcomes = np.zeros(trials, dtype=bool)
            outcomes[:passes] = True
            stream_of = [bool(one) for one in rng.permutation(outcomes)]
            found = screen(DEFAULT_PRIOR, stream_of)
            used.append(found.n)
            called = likeliest(found.looks[-1].regions)
            right_screened.append(called == truth)
            right_fixed.append(likeliest(_regions(sum(stream_of[:AT_MOST]), AT_MOST)) == truth)
            for number, right in fewer.items():
                right.append(likeliest(_regions(sum(stream_of[:number]), number)) == truth)
            certain.append(found.verdict != "uncertain")
            if found.verdict != "uncertain":
                certain_right.append(called == truth)
    share, ours, fixed = np.mean(used) / AT_MOST, np.mean(right_screened), np.mean(right_fixed)
    apart = np.subtract(right_screened, right_fixed, dtype=float)  # of the same cell, in the same order of outcomes
    half = 1.96 * apart.std() / np.sqrt(len(apart))
    text = (
        f"{np.mean(used):.1f} episodes of {AT_MOST} ({share:.2f}) on {len(used)} cells; right {ours:.3f} against "
        f"{fixed:.3f} (difference {apart.mean():+.3f}, 95 % {apart.mean() - half:+.3f} to {apart.mean() + half:+.3f}); "
        f"{np.mean(certain):.2f} certain, {np.mean(certain_right):.3f} of those right"
    )
    yield Row("screening against a fixed 32 (recorded outcomes)", text, "<= 0.5 at equal accuracy", bool(share <= 0.5))
    said = ", ".join(f"{number}: {np.mean(right):.3f}" for number, right in fewer.items())
    yield Row("a smaller fixed number of episodes, and how often it is right", said, "(no bar)", met=True)


def likeliest(found: Regions) -> int:
    """The class that holds most of a posterior: 0 too hard, 1 learnable, 2 saturated."""
    return int(np.argmax([found.low, found.mid, found.high]))


def _regions(passes: int, trials: int) -> Regions:
    return regions(updated(DEFAULT_PRIOR, passes=passes, trials=trials))


def retirements(tasks: int = 10_000, looks: int = 256) -> Iterator[Row]:
    """How many tasks at a pass rate of 0.9 are ever confirmed as saturated, looked at after every outcome."""
    rng = np.random.default_rng(2)
    confirmed = naive = 0
    for _ in range(tasks):
        track = Track()
        once = False
        for passed in rng.random(looks) < 0.9:
            track, _reason = step(track, bool(passed))
            if track.phase == "saturating":
                once = once or regions(track.posterior).high >= CERTAIN
            if track.phase == "saturated":
                confirmed += 1
                break
        naive += once
    text = f"{confirmed / tasks:.4f} of {tasks:,} (by the posterior alone: {naive / tasks:.2f})"
    yield Row(f"wrongful saturation at p = 0.9 over {looks} looks", text, "<= 0.05", confirmed / tasks <= 0.05)


def prediction(families: int = 150) -> Iterator[Row]:
    """Coverage of the 90 % interval for a new draw's pass rate, under the model's own spread and under another one."""
    for name, spread in (("beta, m = 3", None), ("logit-normal, sd 1", 1.0)):
        rng = np.random.default_rng(3)
        held = total = 0
        for _ in range(families):
            weights = np.array([rng.normal(0, 1), -abs(rng.normal(0.8, 0.4)), rng.normal(0, 0.8)])
            levels = [{"length": int(rng.integers(1, 6)), "trap": bool(rng.integers(2))} for _ in range(40)]
            rates = [_rate(rng, weights, level, spread) for level in levels]
            seen = [
                Seen(level, float(rng.binomial(8, rate)), 8.0)
                for level, rate in zip(levels[:30], rates[:30], strict=True)
            ]
            model = fit_levels(seen)
            for level, rate in zip(levels[30:], rates[30:], strict=True):
                at = model.predict(level)
                held += at.low <= rate <= at.high
                total += 1
        coverage = held / total
        yield Row(
            f"coverage of a new draw's 90 % interval ({name})",
            f"{coverage:.3f} of {total:,}",
            "0.85 to 0.95",
            0.85 <= coverage <= 0.95,
        )


def unseen_levels(families: int = 150) -> Iterator[Row]:
    """Coverage at values of a knob that were never drawn, and at those that were.

    Values differ by 1.5 logits, which is less than the prior allows for: at values that were never drawn the interval
    is then wider than it need be.
    """
    rng = np.random.default_rng(4)
    skills = ("print", "look", "count", "table", "join")
    levels = [{"skill": skill} for skill in skills]
    held = {"never drawn": 0, "drawn": 0}
    total = dict.fromkeys(held, 0)
    for _ in range(families):
        logits = rng.normal(0, 1) + rng.normal(0, 1.5, len(skills))
        means = dict(zip(skills, special.expit(logits).tolist(), strict=True))
        drawn = rng.permutation(skills)[:3].tolist()
        rates = [
            (skill, float(rng.beta(3 * means[skill], 3 * (1 - means[skill])))) for skill in drawn for _ in range(8)
        ]
        seen = [Seen({"skill": skill}, float(rng.binomial(8, rate)), 8.0) for skill, rate in rates]
        model = fit_levels(seen, levels=levels)
        for skill in skills:
            at = model.predict({"skill": skill})
            kind = "drawn" if skill in drawn else "never drawn"
            new = rng.beta(3 * means[skill], 3 * (1 - means[skill]), 4)
            held[kind] += int(np.sum((at.low <= new) & (new <= at.high)))
            total[kind] += 4
    for kind, count in total.items():
        coverage = held[kind] / count
        figure = f"coverage of a new draw's 90 % interval, values of a knob that were {kind}"
        most = 0.95 if kind == "drawn" else 1.0
        yield Row(figure, f"{coverage:.3f} of {count:,}", f"0.85 to {most:g}", 0.85 <= coverage <= most)


def _rate(rng: np.random.Generator, weights: np.ndarray, level: dict[str, int | bool], spread: float | None) -> float:
    logit = float(weights @ [1.0, float(level["length"]) - 3.0, float(level["trap"])])
    if spread is not None:
        return float(special.expit(logit + rng.normal(0, spread)))
    mean = float(special.expit(logit))
    return float(rng.beta(3 * mean, 3 * (1 - mean)))

"""How long collecting a batch takes under each way to schedule it, by simulation on recorded durations.

Every arm collects batches of the same P groups of G trials on the same slots; each batch draws its tasks anew from the
recording, and the trials of a group with repetition from its task's. Seeded. Arms:

    wait_all        the first P groups, in order, wait for all (what a synchronous trainer does): the baseline
    longest_first   the same groups, longest expected first
    interleaved     the same groups, first members of all groups first
    first_complete  more groups than needed, the first P to complete are kept, the rest thrown away
    carry_over      groups start whenever there is room, complete ones are taken oldest first, nothing is thrown away
    carry_over_longest_first   the same groups, of every P that are drawn the longest expected first

What an arm keeps is not what it launched: composition stands beside the time (law 11).
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from trainer.admission import Admission
from trainer.launch_order import launch_order
from trainer.simulation.asynchronous import AsyncSetup, simulate_async
from trainer.simulation.static import StaticMode, simulate_static
from trainer.simulation.trace import Last, Share, TraceGroup
from trainer.simulation.trials import PHASES, Recording, Trial

ArmName = Literal[
    "wait_all", "longest_first", "interleaved", "first_complete", "carry_over", "carry_over_longest_first"
]
ARMS: tuple[ArmName, ...] = get_args(ArmName)
BASELINE: ArmName = "wait_all"
_MODES: dict[ArmName, StaticMode] = {
    "wait_all": "group_order",
    "longest_first": "longest_first",
    "interleaved": "interleaved",
    "first_complete": "first_complete",
}
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class CollectSetup:
    """What is simulated.

    Attributes:
        groups_per_batch, group_size, slots: P, G and how many trials may run at once.
        extra: ``first_complete`` launches so many groups for each one it keeps.
        batches: batches per arm; both ``carry_over`` give as many, after as many of warm-up as fill their pool.
    """

    groups_per_batch: int = 8
    group_size: int = 8
    slots: int = 64
    extra: float = 1.5
    batches: int = 100
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm.

    Attributes:
        collect_s: mean seconds from one batch to the next.
        reduction: 1 - collect_s over the baseline's, with its 95 % bootstrap interval ``low``..``high``.
        attribution: mean seconds of collect_s on the path of the trial that completed the batch: queue, setup, agent,
            verify, other.
        kept, launched: composition over all batches.
    """

    name: ArmName
    collect_s: float
    reduction: float
    low: float
    high: float
    attribution: dict[str, float]
    kept: Share
    launched: Share


@dataclass(frozen=True, slots=True)
class _Batches:
    times_s: list[float]
    paths: list[dict[str, float]]
    kept: list[Share]
    launched: list[Share]


def collect(
    recording: Recording,
    setup: CollectSetup,
    *,
    arms: Sequence[ArmName] = ARMS,
    report: Callable[[str], None] = lambda _: None,
) -> list[ArmResult]:
    """Simulate every arm, the baseline first; ``report`` hears each arm's name as it starts."""
    found: dict[ArmName, _Batches] = {}
    for arm in (BASELINE, *(arm for arm in arms if arm != BASELINE)):
        report(arm)
        if arm in _MODES:
            found[arm] = _static(recording, setup, arm)
        else:
            found[arm] = _carry_over(recording, setup, longest_first=arm == "carry_over_longest_first")
    return [_result(arm, batches, found[BASELINE], setup.seed) for arm, batches in found.items()]


def _static(recording: Recording, setup: CollectSetup, arm: ArmName) -> _Batches:
    count = setup.groups_per_batch
    launched = round(count * setup.extra) if arm == "first_complete" else count
    out = _Batches([], [], [], [])
    for batch in range(setup.batches):
        # The same seed for every arm: the first P groups of a batch are the same ones.
        draw = random.Random(f"{setup.seed}/{batch}")  # noqa: S311 - reproducible on purpose
        groups, trials = _draw(recording, setup, draw, launched)
        result = simulate_static(groups, groups_per_batch=count, slots=setup.slots, mode=_MODES[arm])
        out.times_s.append(result.time_to_batch_s)
        out.paths.append(_path(result.last, trials, 0.0, result.time_to_batch_s))
        out.kept.append(result.kept_share)
        out.launched.append(result.launched_share)
    return out


def _carry_over(recording: Recording, setup: CollectSetup, *, longest_first: bool) -> _Batches:
    per_batch = setup.groups_per_batch
    # Enough groups in flight to fill the slots, as a trainer with that staleness bound would have.
    ahead = max(1, -(-setup.slots // (per_batch * setup.group_size)))
    warm_up = 2 * ahead
    steps = setup.batches + warm_up
    draw = random.Random(f"{setup.seed}/carry_over")  # noqa: S311 - reproducible on purpose
    groups, trials = _draw(recording, setup, draw, per_batch * (steps + ahead + 2))
    if longest_first:
        groups = _longest_first(groups, per_batch)
    result = simulate_async(
        groups, AsyncSetup(Admission(ahead, per_batch), steps=steps, train_s=0.0, slots=setup.slots)
    )
    last = {completion.group: completion.last for completion in result.ready}
    steady = result.steps[warm_up:]
    paths = [
        _path(last[step.last_to_complete], trials, step.take_s - step.since_previous_take_s, step.take_s)
        for step in steady
    ]
    times_s = [step.since_previous_take_s for step in steady]
    return _Batches(times_s, paths, [result.kept_share], [result.launched_share])


def _longest_first(groups: Sequence[TraceGroup], block: int) -> list[TraceGroup]:
    """Every ``block`` groups in the order of their expected durations: more at once would starve the short ones."""
    ordered = []
    for start in range(0, len(groups), block):
        some = groups[start : start + block]
        expected_s = [group.expected_s for group in some]
        ordered += [some[first.group] for first in launch_order([1] * len(some), expected_s, order="longest_first")]
    return ordered


def _draw(
    recording: Recording, setup: CollectSetup, draw: random.Random, count: int
) -> tuple[list[TraceGroup], dict[str, list[Trial]]]:
    tasks = list(recording.by_task)
    groups, trials = [], {}
    for number in range(count):
        known = recording.by_task[draw.choice(tasks)]
        members = draw.choices(known, k=setup.group_size)
        name = f"g{number}"
        trials[name] = members
        groups.append(
            TraceGroup(
                name,
                tuple(trial.duration_s for trial in members),
                tuple(trial.passed for trial in members),
                statistics.fmean(trial.duration_s for trial in known),
            )
        )
    return groups, trials


def _path(last: Last, trials: dict[str, list[Trial]], start_s: float, end_s: float) -> dict[str, float]:
    """Where the time from ``start_s`` to ``end_s`` went, looking at the trial that ended it."""
    trial = trials[last.group][last.place]
    path = {"queue": max(0.0, min(last.started_s, end_s) - start_s)}
    at = last.started_s
    for phase, seconds in (
        *zip(PHASES, trial.phases_s, strict=True),
        ("other", trial.duration_s - sum(trial.phases_s)),
    ):
        path[phase] = max(0.0, min(at + seconds, end_s) - max(at, start_s))
        at += seconds
    return path


def _result(arm: ArmName, batches: _Batches, baseline: _Batches, seed: int) -> ArmResult:
    mean, base = statistics.fmean(batches.times_s), statistics.fmean(baseline.times_s)
    low, high = _interval(batches.times_s, baseline.times_s, seed) if arm != BASELINE else (0.0, 0.0)
    return ArmResult(
        name=arm,
        collect_s=mean,
        reduction=1 - mean / base,
        low=low,
        high=high,
        attribution={name: statistics.fmean(path[name] for path in batches.paths) for name in batches.paths[0]},
        kept=_pooled(batches.kept),
        launched=_pooled(batches.launched),
    )


def _interval(times_s: Sequence[float], baseline_s: Sequence[float], seed: int) -> tuple[float, float]:
    """95 % percentile bootstrap of the reduction, over batches in pairs: static arms had the same groups."""
    draw = random.Random(seed)  # noqa: S311 - reproducible on purpose
    pairs = list(zip(times_s, baseline_s, strict=True))
    reductions = []
    for _ in range(_RESAMPLES):
        sample = draw.choices(pairs, k=len(pairs))
        reductions.append(1 - sum(mine for mine, _ in sample) / sum(base for _, base in sample))
    reductions.sort()
    return reductions[round(0.025 * _RESAMPLES)], reductions[round(0.975 * _RESAMPLES) - 1]


def _pooled(shares: Sequence[Share]) -> Share:
    n = sum(share.trajectories for share in shares)
    if not n:
        return Share(0, None, None)
    return Share(
        n,
        sum((share.mean_duration_s or 0.0) * share.trajectories for share in shares) / n,
        sum((share.pass_rate or 0.0) * share.trajectories for share in shares) / n,
    )

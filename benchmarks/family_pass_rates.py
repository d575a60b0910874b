"""Pass rates of the bundled families' levels, by real episodes at temperature 1.

    python benchmarks/family_pass_rates.py --model smollm2 --tasks 8 --samples 8 [--families upper-word,shell-line]

Draws ``tasks`` tasks of every level setting with one changed knob at a time, runs ``samples`` episodes of each, and
prints one Markdown row a setting: pass rate with a 95 % interval clustered by task, coverage, and the share of groups
in which some episodes pass and some do not, which is what training can use. Text tasks need no sandbox; the others take
what `open_provider` finds. Levels that a family predicts below ``--floor`` are skipped and say so.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from envsdk.authoring.draw import Scalar
from envsdk.authoring.families import Family
from envsdk.authoring.find import registered_families
from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.policy import Policy
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from trainer.engines.policy import open_policy


def one_knob_at_a_time(family: Family) -> Iterator[dict[str, Scalar]]:
    """The easiest setting, then every setting that differs from it in one knob."""
    easiest = family.complete({})
    yield easiest
    for knob, values in family.levels.items():
        for value in values[1:]:
            yield {**easiest, knob: value}


async def episodes(
    tasks: list[Task], policy: Policy, provider: SandboxProvider | None, samples: int, limit: asyncio.Semaphore
) -> list[list[EpisodeRecord]]:
    """``samples`` episodes of each task, at most as many at a time as ``limit`` allows."""

    async def one(task: Task, index: int) -> EpisodeRecord:
        async with limit:
            agent = ConversationAgent(policy, seed=index, group_id=task.digests.task)
            return await run_episode(task, agent, provider, group_id=task.digests.task, index_in_group=index)

    flat = await asyncio.gather(*(one(task, index) for task in tasks for index in range(samples)))
    return [list(flat[n : n + samples]) for n in range(0, len(flat), samples)]


def row(family: Family, level: dict[str, Scalar], groups: list[list[EpisodeRecord]], seconds: float) -> str:
    """One Markdown row."""
    scored = [[r.outcome for r in group if r.outcome.graded] for group in groups]
    scored = [group for group in scored if group]
    rates = [sum(o.outcome_class == "model_success" for o in group) / len(group) for group in scored]
    count, total = sum(map(len, scored)), sum(map(len, groups))
    knobs = ", ".join(f"{knob}={value}" for knob, value in level.items())
    if not rates:
        return f"| {family.name} | {knobs} | not scored | | 0/{total} | |"
    mean = statistics.fmean(rates)
    spread = 1.96 * statistics.stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else float("nan")
    mixed = sum(0 < rate < 1 for rate in rates) / len(rates)
    low, high = max(0.0, mean - spread), min(1.0, mean + spread)
    print(f"{family.name} {knobs}: {mean:.2f}, {total / seconds:.1f} episodes/s", file=sys.stderr)
    rate = f"{mean:.2f} ({low:.2f}-{high:.2f})"
    return f"| {family.name} | {knobs} | {rate} | {mixed:.2f} | {count}/{total} | {len(rates)} |"


async def main(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    policy = open_policy(options.model, temperature=1.0)
    provider = open_provider() if options.sandbox != "none" else None
    limit = asyncio.Semaphore(options.concurrent)
    print("| family | level | pass rate | mixed groups | scored | tasks |\n|---|---|---|---|---|---|", flush=True)
    try:
        for name, family in registered_families().items():
            if options.families and name not in options.families.split(","):
                continue
            for level in one_knob_at_a_time(family):
                guess = family.predicted_pass(level)
                if guess is not None and guess < options.floor:
                    print(f"{name} {level}: skipped, predicted {guess:.1g}", file=sys.stderr)
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    seeds = range(options.seed, options.seed + options.tasks)
                    tasks = family.draw_many(seeds=seeds, level=level, dest=Path(folder))
                    start = time.monotonic()
                    groups = await episodes(tasks, policy, provider, options.samples, limit)
                    print(row(family, level, groups, time.monotonic() - start), flush=True)
    finally:
        await policy.close()
        if provider is not None:
            await provider.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--families", default="")
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--seed", type=int, default=10_000)
    parser.add_argument("--concurrent", type=int, default=32)
    parser.add_argument("--floor", type=float, default=0.01)
    parser.add_argument("--sandbox", default="")
    asyncio.run(main(parser.parse_args()))

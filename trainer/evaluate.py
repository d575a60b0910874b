"""Evaluation: the pass rate of a policy on tasks, on the engine and in the precision that serves and trains.

Every task gets ``n`` episodes; one that the machinery spoiled is tried again a bounded number of times. What could not
be scored enters no rate (law 1) and lowers the coverage that stands beside it. The interval is clustered by task.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from envsdk.digest import sha256_hex
from envsdk.episode.record import EpisodeRecord
from envsdk.spec.model import Task
from trainer.interval import RateInterval, clustered_rate

RunOne = Callable[[Task, str, int], Awaitable[EpisodeRecord]]
"""One episode of a task, under an episode id, with a seed."""
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was measured. ``families``: the same by family."""

    overall: RateInterval
    coverage: float
    families: dict[str, RateInterval]
    records: tuple[EpisodeRecord, ...]


async def evaluate(
    tasks: Sequence[Task],
    run: RunOne,
    *,
    n: int = 4,
    concurrency: int = 64,
    seed: int = 0,
    name: str = "",
    on_end: Callable[[EpisodeRecord], None] = lambda _: None,
) -> Evaluation:
    """Run ``n`` episodes of every task.

    Args:
        tasks: what to evaluate on.
        run: one episode; its failures are records.
        n: attempts per task.
        concurrency: episodes at once.
        seed: of the sampling; the same seed, weights and engine give a task the same random numbers.
        name: prefix of the episode ids; where empty a fresh one, as no other evaluation has.
        on_end: hears every record as it comes.

    Cancelled, it tries no episode again, and raises when those under way have ended: as records, not as exceptions.
    """
    slots = asyncio.Semaphore(concurrency)
    prefix = name or f"eval-{uuid.uuid4().hex[:12]}"

    async def attempt(task: Task, number: int, index: int) -> EpisodeRecord:
        async with slots:
            for tried in range(_TRIES):
                record = await run(task, f"{prefix}-{number:05d}-{index}.{tried}", _seed_of(seed, task, index))
                if not record.outcome.redispatch or record.facts.get("ended_by") == "cancel":
                    break
            on_end(record)
            return record

    # Siblings stand next to each other, so that they find their prompt in the prefix cache.
    pairs = [(task, number, index) for number, task in enumerate(tasks) for index in range(n)]
    records = await asyncio.gather(*(attempt(*pair) for pair in pairs))
    return summarise(records)


def _seed_of(seed: int, task: Task, index: int) -> int:
    """A session adds one for every turn: seeds that lay side by side would give a neighbour's turns the same noise."""
    return int(sha256_hex(f"{seed}/{task.digests.task}/{index}".encode())[:12], 16)


def summarise(records: Sequence[EpisodeRecord]) -> Evaluation:
    """Rates, interval and coverage of given episodes."""
    counted = [record for record in records if record.outcome.counts_in_eval and record.outcome.reward is not None]
    families = sorted({record.family for record in records})
    return Evaluation(
        overall=_rate(counted),
        coverage=len(counted) / len(records) if records else 0.0,
        families={family: _rate([r for r in counted if r.family == family]) for family in families},
        records=tuple(records),
    )


def _rate(records: Sequence[EpisodeRecord]) -> RateInterval:
    by_task: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for record in records:
        passed = record.outcome.outcome_class == "model_success"
        by_task[record.task_digest, record.verifier_digest].append(passed)
    return clustered_rate(by_task.values())

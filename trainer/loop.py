"""The loop: the one place that knows every room of the trainer.

Who waits for whom (-> means hands over to; [ ] is where something may wait):

    sampler -> dispatcher [admission: (S + version + 1) P] -> G members [a slot] -> episode -> ledger
                  ^                                                  |                 |
                  | version + 1                                      v                 v
    publisher <- learner [a batch] <- batch <- pool [P complete groups] <- group    uploader -> registry
        |           (own thread)
        v
    engines [paused for tenths of a second; requests keep running]

The learner waits for P complete groups; nobody waits for the learner but the next publication. Dispatching goes on
while the learner computes; what it may run ahead is bounded by admission, and what is too old at the take is dropped.
An engine waits only while weights are swapped. A failed publication costs its replica, is tried on those left, and ends
the run with the last one. A checkpoint is taken between two steps.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from envsdk.episode.record import EpisodeRecord
from envsdk.errors import EngineError
from envsdk.files.jsonl import read_rows
from trainer import checkpoint
from trainer.assemble import assembled
from trainer.clock import batch_timing
from trainer.config import TrainConfig
from trainer.model_folder import origin
from trainer.parts import Parts
from trainer.recovery import LoopState, describe, describe_draw
from trainer.run_dir import METRICS, MODEL, RunDir
from trainer.step_report import console_line, step_row, summarise
from trainer.weights import Publication


async def run_steps(parts: Parts) -> None:
    """Train until the last step. The dispatcher runs meanwhile, and is stopped however this ends.

    Raises:
        FaultyError: ``no_signal``: nothing in the tasks for this model to learn from.
        EngineError: no replica is left.
    """
    serving = asyncio.create_task(parts.dispatcher.serve(), name="dispatcher")
    handover = parts.now()
    try:
        for step in range(parts.first_step, parts.steps + 1):
            handover = await _step(parts, step, previous_handover=handover)
            if checkpoint.is_due(step, every=parts.checkpoint_every, last=parts.steps):
                await _checkpoint(parts, step)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await parts.dispatcher.stop()


async def _step(parts: Parts, step: int, *, previous_handover: float) -> float:
    """One optimizer step and its publication; returns the moment of the hand-over to the learner."""
    before = parts.activity.totals
    asked_at = parts.now()
    version = parts.publisher.version
    groups = await parts.pool.take(parts.groups_per_step, version=version)
    taken_at = parts.now()
    batch = await parts.learner.build(groups, version=version)
    packed_at = parts.now()
    metrics = await parts.learner.step(batch)
    trained_at = parts.now()
    await parts.dispatcher.cancel_doomed(version + 1)
    publication = await _publish(parts)
    parts.dispatcher.wake()
    published_at = parts.now()
    launched, parts.launched[:] = list(parts.launched), []
    row = step_row(
        step=step,
        version=version,
        groups=groups,
        launched=launched,
        learner=metrics,
        timing=batch_timing(
            groups,
            previous_handover=previous_handover,
            asked_at=asked_at,
            taken_at=taken_at,
            packed_at=packed_at,
        ),
        activity=parts.activity.totals.since(before),
        publication=publication,
        counts=parts.dispatcher.counts,
    )
    parts.run.metrics({**row, "time": time.time()})
    for what, start, end in (
        ("wait", asked_at, taken_at),
        ("pack", taken_at, packed_at),
        ("train", packed_at, trained_at),
        ("publish", trained_at, published_at),
    ):
        parts.run.timeline("learner", what, start - parts.zero, end - parts.zero, step=step)
    for record in launched:
        _draw_episode(parts, record)
    parts.say(console_line(row, steps=parts.steps))
    return packed_at


async def _publish(parts: Parts) -> Publication:
    """Publish until it succeeds or no replica is left; each failure has cost at least one replica."""
    while True:
        try:
            return await parts.publisher.publish()
        except EngineError as error:
            if error.code != "sync_failed" or not parts.rotation.active:
                raise
            parts.say(f"publishing failed, going on without the replica: {error}")


async def _checkpoint(parts: Parts, step: int) -> None:
    started = parts.now()
    state = loop_state(parts, step)
    await parts.learner.save(parts.run.checkpoints, state)
    parts.run.timeline("learner", "checkpoint", started - parts.zero, parts.now() - parts.zero, step=step)
    parts.run.update(last_checkpoint=step)


def _draw_episode(parts: Parts, record: EpisodeRecord) -> None:
    """An episode's phases on the timeline; one that left no stamps is a single bar."""
    begun = record.started_at - parts.zero_unix
    at = 0.0
    for what, stamp in (("acquire", "acquired"), ("generate", "last_token"), ("verify", "verified")):
        if stamp in record.stamps:
            parts.run.timeline("episode", what, begun + at, begun + record.stamps[stamp], id=record.episode_id)
            at = record.stamps[stamp]


def loop_state(parts: Parts, step: int) -> LoopState:
    """What a checkpoint after ``step`` must hold beside the learner; taken at one moment, without awaiting."""
    counts = parts.dispatcher.counts
    return LoopState(
        step=step,
        version=parts.publisher.version,
        next_order=parts.dispatcher.order,
        accepted=counts.accepted,
        completions=parts.dispatcher.completions,
        ledger_ended=parts.ledger.ended,
        rejected=dict(counts.rejected),
        refills=counts.refills,
        exhausted=counts.exhausted,
        pool=tuple(describe(group) for group in parts.pool.ready),
        in_flight=tuple(describe_draw(draw) for draw in parts.dispatcher.running),
        sampler=parts.draws.state(),
    )


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to; the keys of ``envsdk train --json``."""

    run_dir: str
    steps: int
    reward_first: float | None
    reward_last: float | None
    batch_s: dict[str, float]
    outcomes: dict[str, int]


async def train(config: TrainConfig, run: RunDir, *, say: Callable[[str], None] = lambda _: None) -> RunResult:
    """Run or resume the training in ``run``'s directory. Raises as `assembled` and `run_steps` do."""
    run.update(status="running", why="")  # a resumed one said how it had ended
    try:
        async with assembled(config, run, say=say) as parts:
            try:
                await run_steps(parts)
            except asyncio.CancelledError:
                # Before the engine is closed, which takes seconds: a second Ctrl-C must not leave a run that "runs".
                run.update(status="interrupted", why="interrupted")
                raise
            lineage, version = origin(parts.model_dir)[0], parts.publisher.version
            tasks = {record.task_digest for record in parts.ledger.records()}
            await parts.learner.export(
                run.path / MODEL, parts.model_dir, lineage=lineage, version=version, trained_on=tasks
            )
            outcomes = dict(parts.ledger.outcomes)
    except BaseException as error:
        ended = "interrupted" if isinstance(error, asyncio.CancelledError) else "failed"
        with suppress(OSError):  # a disk that is full for this, too, must not hide what happened
            run.update(status=ended, why=str(error) or ended)
        raise
    result = RunResult(str(run.path), **summarise(read_rows(run.path / METRICS).rows), outcomes=outcomes)
    run.update(status="done", ended=time.time(), result=asdict(result))
    return result

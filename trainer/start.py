"""Where a run begins: the probe's baseline measured, updates rehearsed, a resumed run brought to its checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from envsdk.spec.model import Task
from trainer import checkpoint
from trainer.endings import abandoned
from trainer.learner_thread import LOOP_STATE
from trainer.parts import Parts
from trainer.recovery import LoopState, beginning, recover


async def start_parts(parts: Parts, tasks: Sequence[Task]) -> None:
    """Measure the engines against the learner; then go on from the newest checkpoint where the ledger holds episodes.

    Raises:
        EngineError: they disagree, or do not take an update.
        StoreError: no checkpoint is whole.
    """
    await _measure(parts)
    closed = parts.ledger.close_abandoned(partial(abandoned, policy=parts.policy))
    if parts.ledger.ended:
        await _resume(parts, tasks, cut_off=len(closed))


async def _measure(parts: Parts) -> None:
    readings = await parts.publisher.start()
    baseline = max(reading.mean for reading in readings)
    parts.say(f"engine and learner differ by {baseline:.4f} nats a token before any update")
    rehearsals = await parts.publisher.rehearse(parts.learner.perturbed)
    parts.say(f"rehearsed two updates: {', '.join(f'{trial.mismatch:.4f}' for trial in rehearsals)} nats")
    parts.run.update(mismatch_baseline=baseline, mismatch_rehearsed=[trial.mismatch for trial in rehearsals])


async def _resume(parts: Parts, tasks: Sequence[Task], *, cut_off: int) -> None:
    newest = await asyncio.to_thread(partial(checkpoint.newest, parts.run.checkpoints, say=parts.say))
    if newest is None:
        state = beginning(version=parts.publisher.version, sampler=parts.draws.state())
    else:
        state = LoopState.model_validate_json((newest / LOOP_STATE).read_text(encoding="utf-8"))
        await parts.learner.load(newest)
        parts.publisher.version = state.version - 1
        await parts.publisher.publish()  # the engine started from the model's folder
    recovered = recover(state, parts.ledger.records(), {task.digests.task: task for task in tasks})
    parts.draws.restore(state.sampler)
    parts.dispatcher.restore(state, recovered)
    parts.first_step = state.step + 1
    parts.run.forget_after(state.step)
    parts.say(
        f"resuming after step {state.step} at version {state.version}: {len(recovered.pool)} groups wait, "
        f"{len(recovered.in_flight)} were in flight, {cut_off} episodes were cut off, "
        f"{recovered.undone} came from steps that are undone"
    )

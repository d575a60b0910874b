"""Put a run together: registry, tasks, sandboxes, engine, learner, and the rooms between them; take it apart again.

Order matters twice: the directory with ``run.json`` exists before anything can fail, and everything that was started is
ended in reverse, however the run ends. A resumed run goes through the same code, with a checkpoint and the ledger as
what it starts from.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from envsdk.episode.conversation import ConversationAgent
from envsdk.sandboxes import open_provider
from envsdk.spec.model import Task
from envsdk.waiting import told
from registry.client import RegistryClient, open_registry
from trainer import task_set
from trainer.activity import Activity
from trainer.boxes import build_images, keep_warm
from trainer.config import TrainConfig
from trainer.disk_room import require_room
from trainer.engines.policy import start_policy
from trainer.engines.token_policy import Sampling, TokenPolicy
from trainer.implied import implied
from trainer.learner_thread import Learner, LearnerThread
from trainer.look_ahead import LookAhead
from trainer.model_folder import origin
from trainer.models import require_known, resolve_model
from trainer.parts import Parts
from trainer.placement import Placement, place, visible_gpus
from trainer.rooms import Ends, connect
from trainer.run_dir import TASKS, RunDir
from trainer.start import start_parts
from trainer.uploader import Uploader

Say = Callable[[str], None]


@asynccontextmanager
async def assembled(config: TrainConfig, run: RunDir, *, say: Say) -> AsyncIterator[Parts]:
    """The parts of a run in ``run``'s directory, fresh or from its newest checkpoint.

    Raises:
        FaultyError: the query matches nothing.
        PrerequisiteError: no sandbox back end, no vLLM, or no room on the disk.
        EngineError: the engine did not start, or does not agree with the learner.
    """
    async with AsyncExitStack() as closing:
        require_known(config.model)  # before anything is pinned for it
        registry = closing.enter_context(open_registry(config.registry or None))
        tasks = await _pinned(config, run, registry, say=say)
        placement = await asyncio.to_thread(_placement, config)
        config = implied(config, tasks, placement)
        ends = await _ends(config, run, placement, closing, say=say)
        needs = await build_images(tasks, ConversationAgent(ends.policy), ends.provider, say=say)
        moved = asyncio.Event()
        draws = await _draws(config, registry, tasks, ends, moved=moved)
        uploader = _uploader(run, registry, closing, say=say)
        parts = connect(config, run, ends, draws=draws, uploader=uploader)
        # Before anything new ends: a killed process may have left some in the ledger that it never sent.
        uploader.add_again(parts.ledger.records())
        parts.say = say
        warming = keep_warm(
            needs, ends.provider, upcoming=lambda: draws.upcoming, members=config.group_size, moved=moved, say=say
        )
        closing.push_async_callback(_cancelled, asyncio.create_task(warming, name="warm boxes"))
        await start_parts(parts, tasks)
        yield parts


async def _pinned(config: TrainConfig, run: RunDir, registry: RegistryClient, *, say: Say) -> list[Task]:
    """The tasks that the query found when the run was new, their files in the run's directory."""
    pinned = run.facts.get("task_set")
    name, digest, pairs = await asyncio.to_thread(
        partial(task_set.pin, registry, query=config.query, revision=str(pinned or ""))
    )
    run.update(task_set=name, task_set_digest=digest)
    tasks = await asyncio.to_thread(task_set.fetch, registry, pairs, run.path / TASKS)
    say(f"{len(tasks)} tasks, pinned as {name}")
    return tasks


def _placement(config: TrainConfig) -> Placement:
    engine, learner = config.engine, config.learner
    return place(visible_gpus(), learner=learner.device, replicas=engine.replicas, per_replica=engine.tensor_parallel)


async def _ends(config: TrainConfig, run: RunDir, placement: Placement, closing: AsyncExitStack, *, say: Say) -> Ends:
    """Sandboxes, learner and engines, started; ``closing`` ends them."""
    provider = open_provider(config.sandbox or None)
    closing.push_async_callback(provider.close)
    say(f"sandboxes: {provider.name}")
    model_dir = resolve_model(config.model, progress=say)
    require_room(run.path, config, model_dir)
    activity = Activity()
    learner = LearnerThread(activity, dtype=config.engine.dtype, say=say)
    closing.callback(learner.close)
    say("starting the engine and the learner (on a CPU some tens of seconds)")
    policy = await told(
        _started(config, model_dir, learner, activity=activity, placement=placement), say, lambda: "still starting"
    )
    say("engine and learner are up")
    closing.push_async_callback(policy.close)
    return Ends(model_dir, policy, learner, activity, provider)


async def _started(
    config: TrainConfig, model_dir: Path, learner: LearnerThread, *, activity: Activity, placement: Placement
) -> TokenPolicy:
    """Engines and learner, at once, or on a GPU that they share one after the other, engines first."""
    engines = asyncio.create_task(
        start_policy(
            model_dir,
            engine=config.engine,
            sampling=Sampling(temperature=config.learner.temperature),
            watcher=activity,
            gpus=placement.replicas,
        )
    )
    try:
        if placement.shared:
            await engines
        await learner.start(partial(_make_learner, model_dir, config))
        return await engines
    except BaseException:  # an interrupt too: nobody else knows of the engines yet
        engines.cancel()
        for policy in await asyncio.gather(engines, return_exceptions=True):
            if isinstance(policy, TokenPolicy):
                await policy.close()
        raise


def _make_learner(model_dir: Path, config: TrainConfig) -> Learner:
    from trainer.learner import Learner as TorchLearner

    return TorchLearner(model_dir, config.learner)


async def _draws(
    config: TrainConfig, registry: RegistryClient, tasks: list[Task], ends: Ends, *, moved: asyncio.Event
) -> LookAhead:
    """Which tasks come next, from what the registry knows of them; ``moved`` is set when another one is next."""
    lineage, version = ends.policy.id.lineage, origin(ends.model_dir)[1]
    sampler = await asyncio.to_thread(
        partial(task_set.sampler, registry, tasks, lineage=lineage, version=version, seed=config.seed)
    )
    return LookAhead(sampler, depth=config.groups_per_step, moved=moved.set)


def _uploader(run: RunDir, registry: RegistryClient, closing: AsyncExitStack, *, say: Say) -> Uploader:
    """What sends the registry every outcome, at work; at its end ``closing`` has it send the rest."""
    uploader = Uploader(partial(registry.append, run=run.registry_name), warn=say)
    uploading = asyncio.create_task(uploader.serve(), name="uploader")
    closing.push_async_callback(_finish_upload, uploader, uploading, say)
    return uploader


async def _finish_upload(uploader: Uploader, uploading: asyncio.Task[None], say: Say) -> None:
    await _cancelled(uploading)
    await uploader.flush()
    if uploader.waiting:
        say(f"{uploader.waiting} episodes are not in the registry: envsdk registry ingest RUN/episodes.jsonl")


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

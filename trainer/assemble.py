"""Put a run together: registry, tasks, sandboxes, engine, learner, and the rooms between them; take it apart again.

Order matters twice: the directory with ``run.json`` exists before anything can fail, and everything that was started is
ended in reverse, however the run ends. A resumed run goes through the same code, with a checkpoint and the ledger as
what it starts from.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.model import Task
from envsdk.waiting import told
from registry.client import open_registry
from trainer import checkpoint, task_set
from trainer.activity import Activity
from trainer.admission import Admission
from trainer.boxes import build_images, keep_warm
from trainer.config import TrainConfig
from trainer.disk_room import require_room
from trainer.dispatch import Dispatcher
from trainer.endings import abandoned
from trainer.engines.policy import start_policy
from trainer.engines.token_policy import Sampling, TokenPolicy
from trainer.group import CompleteGroup, Member
from trainer.implied import implied
from trainer.learner_thread import LOOP_STATE, Learner, LearnerThread
from trainer.ledger import Ledger
from trainer.look_ahead import LookAhead
from trainer.model_folder import origin
from trainer.models import require_known, resolve_model
from trainer.parts import Parts
from trainer.placement import Placement, place, visible_gpus
from trainer.places import RunMember
from trainer.pool import Pool
from trainer.probe import PROBE_TEXTS, Probe
from trainer.recovery import LoopState, beginning, recover
from trainer.run_dir import TASKS, RunDir
from trainer.uploader import Uploader
from trainer.weights import WeightPublisher

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
        pinned = run.facts.get("task_set")
        name, digest, pairs = await asyncio.to_thread(
            partial(task_set.pin, registry, query=config.query, revision=str(pinned or ""))
        )
        run.update(task_set=name, task_set_digest=digest)
        tasks = await asyncio.to_thread(task_set.fetch, registry, pairs, run.path / TASKS)
        say(f"{len(tasks)} tasks, pinned as {name}")
        placement = await asyncio.to_thread(_placement, config)
        config = implied(config, tasks, placement)
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
        needs = await build_images(tasks, ConversationAgent(policy), provider, say=say)
        sampler = await asyncio.to_thread(
            partial(
                task_set.sampler,
                registry,
                tasks,
                lineage=policy.id.lineage,
                version=origin(model_dir)[1],
                seed=config.seed,
            )
        )
        moved = asyncio.Event()
        draws = LookAhead(sampler, depth=config.groups_per_step, moved=moved.set)
        uploader = Uploader(partial(registry.append, run=run.registry_name), warn=say)
        uploading = asyncio.create_task(uploader.serve(), name="uploader")
        closing.push_async_callback(_finish_upload, uploader, uploading, say)
        parts = _rooms(
            config,
            run,
            model_dir=model_dir,
            policy=policy,
            learner=learner,
            activity=activity,
            draws=draws,
            provider=provider,
            uploader=uploader,
        )
        # Before anything new ends: a killed process may have left some in the ledger that it never sent.
        uploader.add_again(parts.ledger.records())
        parts.say = say
        warming = keep_warm(
            needs, provider, upcoming=lambda: draws.upcoming, members=config.group_size, moved=moved, say=say
        )
        closing.push_async_callback(_cancelled, asyncio.create_task(warming, name="warm boxes"))
        await start_parts(parts, tasks)
        yield parts


def _placement(config: TrainConfig) -> Placement:
    engine, learner = config.engine, config.learner
    return place(visible_gpus(), learner=learner.device, replicas=engine.replicas, per_replica=engine.tensor_parallel)


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


def _rooms(
    config: TrainConfig,
    run: RunDir,
    *,
    model_dir: Path,
    policy: TokenPolicy,
    learner: LearnerThread,
    activity: Activity,
    draws: LookAhead,
    provider: SandboxProvider,
    uploader: Uploader,
) -> Parts:
    launched: list[EpisodeRecord] = []

    def ended(record: EpisodeRecord) -> None:
        launched.append(record)
        uploader.add(record)

    def completed(group: CompleteGroup) -> None:
        for record in group.episodes:
            passed = record.outcome.outcome_class == "model_success"
            oldest = record.weight_version_oldest
            version = group.draw.version if oldest is None else oldest
            draws.observe(record.task_digest, passed=passed, graded=int(record.outcome.graded), version=version)

    ledger = Ledger(run.path, on_end=ended)
    pool = Pool(max_lag=config.max_lag)
    probe = Probe([tuple(policy.chat.plain(text)) for text in PROBE_TEXTS], learner.score)
    publisher = WeightPublisher(policy.rotation, probe, learner.write, version=origin(model_dir)[1])
    dispatcher = Dispatcher(
        draw=draws.draw,
        run=_episode_runner(policy, provider, activity, seed=config.seed),
        policy=policy.id,
        pool=pool,
        ledger=ledger,
        admission=Admission(config.staleness, config.groups_per_step),
        version=lambda: publisher.version,
        first_version=origin(model_dir)[1],
        group_size=config.group_size,
        slots=config.concurrency,
        verifications=config.verifications,
        refills=config.refills,
        prefix=run.prefix,
        ready=policy.rotation.require,
        completed=completed,
    )
    return Parts(
        run=run,
        policy=policy.id,
        learner=learner,
        rotation=policy.rotation,
        publisher=publisher,
        dispatcher=dispatcher,
        pool=pool,
        ledger=ledger,
        activity=activity,
        draws=draws,
        model_dir=model_dir,
        steps=config.steps,
        groups_per_step=config.groups_per_step,
        checkpoint_every=config.checkpoint_every,
        launched=launched,
    )


async def start_parts(parts: Parts, tasks: Sequence[Task]) -> None:
    """Measure the probe's baseline; then, in a resumed run, bring everything to where the checkpoint stood."""
    readings = await parts.publisher.start()
    baseline = max(reading.mean for reading in readings)
    parts.say(f"engine and learner differ by {baseline:.4f} nats a token before any update")
    rehearsals = await parts.publisher.rehearse(parts.learner.perturbed)
    parts.say(f"rehearsed two updates: {', '.join(f'{trial.mismatch:.4f}' for trial in rehearsals)} nats")
    parts.run.update(mismatch_baseline=baseline, mismatch_rehearsed=[trial.mismatch for trial in rehearsals])
    closed = parts.ledger.close_abandoned(partial(abandoned, policy=parts.policy))
    if not parts.ledger.ended:
        return
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
        f"{len(recovered.in_flight)} were in flight, {len(closed)} episodes were cut off, "
        f"{recovered.undone} came from steps that are undone"
    )


def _episode_runner(policy: TokenPolicy, provider: SandboxProvider, activity: Activity, *, seed: int) -> RunMember:
    async def run(member: Member, grading: AbstractAsyncContextManager[object]) -> EpisodeRecord:
        activity.started(member.episode_id)
        group_id, episode_id = member.draw.group_id, member.episode_id
        agent = ConversationAgent(policy, member.seed(seed), group_id=group_id, session_id=episode_id)
        try:
            return await run_episode(
                member.draw.task,
                agent,
                provider,
                episode_id=episode_id,
                group_id=group_id,
                index_in_group=member.index,
                attempt=member.attempt,
                grading=grading,
            )
        finally:
            activity.ended(member.episode_id)

    return run


def _make_learner(model_dir: Path, config: TrainConfig) -> Learner:
    from trainer.learner import Learner as TorchLearner

    return TorchLearner(model_dir, config.learner)


async def _finish_upload(uploader: Uploader, uploading: asyncio.Task[None], say: Say) -> None:
    await _cancelled(uploading)
    await uploader.flush()
    if uploader.waiting:
        say(f"{uploader.waiting} episodes are not in the registry: envsdk registry ingest RUN/episodes.jsonl")


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

"""The rooms between a run's two ends, connected: ledger, pool, probe, publisher, dispatcher, and what they tell others.

Nothing here starts or waits for anything; `trainer.assemble` has started the ends, `trainer.start` measures them.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.record import EpisodeRecord
from envsdk.episode.run import run_episode
from envsdk.sandboxes.base import SandboxProvider
from trainer.activity import Activity
from trainer.admission import Admission
from trainer.config import TrainConfig
from trainer.dispatch import Dispatcher
from trainer.engines.token_policy import TokenPolicy
from trainer.group import CompleteGroup, Member
from trainer.learner_thread import LearnerThread
from trainer.ledger import Ledger
from trainer.look_ahead import LookAhead
from trainer.model_folder import origin
from trainer.parts import Parts
from trainer.places import RunMember
from trainer.pool import Pool
from trainer.probe import PROBE_TEXTS, Probe
from trainer.run_dir import RunDir
from trainer.uploader import Uploader
from trainer.weights import WeightPublisher


@dataclass(frozen=True, slots=True)
class Ends:
    """What generates, learns and acts, all of it running, and the model that both ends began with."""

    model_dir: Path
    policy: TokenPolicy
    learner: LearnerThread
    activity: Activity
    provider: SandboxProvider


def connect(config: TrainConfig, run: RunDir, ends: Ends, *, draws: LookAhead, uploader: Uploader) -> Parts:
    """The parts of a run in ``run``'s directory."""
    launched: list[EpisodeRecord] = []

    def ended(record: EpisodeRecord) -> None:
        launched.append(record)
        uploader.add(record)

    policy, learner, first_version = ends.policy, ends.learner, origin(ends.model_dir)[1]
    ledger = Ledger(run.path, on_end=ended)
    pool = Pool(max_lag=config.max_lag)
    probe = Probe([tuple(policy.chat.plain(text)) for text in PROBE_TEXTS], learner.score)
    publisher = WeightPublisher(policy.rotation, probe, learner.write, version=first_version)
    dispatcher = Dispatcher(
        draw=draws.draw,
        run=_episode_runner(ends, seed=config.seed),
        policy=policy.id,
        pool=pool,
        ledger=ledger,
        admission=Admission(config.staleness, config.groups_per_step),
        version=lambda: publisher.version,
        first_version=first_version,
        group_size=config.group_size,
        slots=config.concurrency,
        verifications=config.verifications,
        refills=config.refills,
        prefix=run.prefix,
        ready=policy.rotation.require,
        completed=lambda group: _observe(draws, group),
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
        activity=ends.activity,
        draws=draws,
        model_dir=ends.model_dir,
        steps=config.steps,
        groups_per_step=config.groups_per_step,
        checkpoint_every=config.checkpoint_every,
        launched=launched,
    )


def _observe(draws: LookAhead, group: CompleteGroup) -> None:
    """Tell the sampler what a group came to."""
    for record in group.episodes:
        passed = record.outcome.outcome_class == "model_success"
        oldest = record.weight_version_oldest
        version = group.draw.version if oldest is None else oldest
        draws.observe(record.task_digest, passed=passed, graded=int(record.outcome.graded), version=version)


def _episode_runner(ends: Ends, *, seed: int) -> RunMember:
    async def run(member: Member, grading: AbstractAsyncContextManager[object]) -> EpisodeRecord:
        ends.activity.started(member.episode_id)
        group_id, episode_id = member.draw.group_id, member.episode_id
        agent = ConversationAgent(ends.policy, member.seed(seed), group_id=group_id, session_id=episode_id)
        try:
            return await run_episode(
                member.draw.task,
                agent,
                ends.provider,
                episode_id=episode_id,
                group_id=group_id,
                index_in_group=member.index,
                attempt=member.attempt,
                grading=grading,
            )
        finally:
            ends.activity.ended(member.episode_id)

    return run

"""Two real replicas on one machine: they divide its cores, share the sessions, and take a version together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from envsdk.policy import Message
from trainer.activity import Activity
from trainer.engines.options import EngineOptions
from trainer.engines.policy import start_policy
from trainer.engines.token_policy import Sampling, TokenPolicy
from trainer.learner import Learner
from trainer.learner_config import LearnerConfig
from trainer.learner_thread import LearnerThread
from trainer.models import tiny_model_dir
from trainer.probe import PROBE_TEXTS, Probe
from trainer.weights import WeightPublisher

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of vLLM and torch, by the dozen, while they are imported
]


async def _versions(policy: TokenPolicy, sessions: int) -> set[int | None]:
    """Weight versions that answered so many conversations at once."""

    async def talk(number: int) -> int | None:
        session = await policy.begin(session_id=f"session-{number}", seed=number)
        reply = await session.reply([Message(role="user", content=f"count to {number}")], max_tokens=4)
        return reply.weight_version

    return set(await asyncio.gather(*(talk(number) for number in range(sessions))))


async def test_two_replicas_serve_and_take_a_version_together(tmp_path: Path) -> None:
    model_dir = tiny_model_dir()
    options = EngineOptions(replicas=2, max_model_len=256, max_concurrent=4, kv_cache_gib=1)
    learner = LearnerThread(Activity(), folder=tmp_path)
    policy = await start_policy(model_dir, engine=options, sampling=Sampling())
    try:
        await learner.start(lambda: Learner(model_dir, LearnerConfig(threads=1)))
        rotation = policy.rotation
        assert [engine.name for engine in rotation.active] == ["0", "1"]

        assert await _versions(policy, 4) == {0}
        assert rotation._router.active == (2, 2)  # the least loaded first: nobody has all of them

        probe = Probe([tuple(policy.chat.plain(text)) for text in PROBE_TEXTS], learner.score)
        publisher = WeightPublisher(rotation, probe, learner.write)
        baselines = await publisher.start()
        assert [reading.replica for reading in baselines] == ["0", "1"]
        await publisher.rehearse(learner.perturbed)
        publication = await publisher.publish()
        assert (publication.version, len(publication.readings)) == (1, 2)
        assert publication.mismatch <= probe.limit
        assert [engine.version for engine in rotation.active] == [1, 1]
        assert await _versions(policy, 4) == {1}

        # One that leaves takes none of the others with it: its sessions move.
        rotation.remove(rotation.replicas[0], "for the test")
        await rotation.replicas[0].close()
        assert await _versions(policy, 4) == {1}
    finally:
        await policy.close()
        learner.close()

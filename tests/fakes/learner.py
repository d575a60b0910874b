"""A fake learner and a run of fakes around it: the real loop, dispatcher, pool, ledger, publisher and checkpoints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from envsdk.episode.record import EpisodeRecord
from tests.fakes.engine import FakeEngine, true_logprob
from tests.fakes.episodes import FAKE_POLICY, FakeEpisodes, make_task, scored
from trainer.activity import Activity
from trainer.admission import Admission
from trainer.config import TrainConfig
from trainer.dispatch import Dispatcher
from trainer.engines.rotation import Rotation
from trainer.group import CompleteGroup
from trainer.learner_thread import LearnerThread
from trainer.ledger import Ledger
from trainer.parts import Parts
from trainer.pool import Pool
from trainer.probe import Probe
from trainer.run_dir import RunDir
from trainer.start import start_parts
from trainer.weights import WeightPublisher


class FakeLearner:
    """Its weights are a digest of every batch it was trained on, in order: equal weights mean an equal history."""

    def __init__(self) -> None:
        self.updates = 0
        self.history = hashlib.sha256(b"start").hexdigest()
        self.trained: list[list[str]] = []
        self.pretended: int | None = None

    def build(self, groups: Sequence[CompleteGroup], *, version: int) -> list[EpisodeRecord]:
        return [record for group in groups for record in group.episodes]

    def step(self, batch: list[EpisodeRecord]) -> Mapping[str, float]:
        self.updates += 1
        seen = [(r.task_digest, r.group_id, r.index_in_group, r.outcome.reward) for r in batch]
        self.history = hashlib.sha256(f"{self.history}{seen}".encode()).hexdigest()
        self.trained.append([record.episode_id for record in batch])
        return {"loss": float(self.updates), "grad_norm": 1.0}

    def named_weights(self):
        yield "w", torch.tensor([float(self.updates)])

    @contextmanager
    def perturbed(self, *, scale, seed):
        self.pretended = -1
        yield
        self.pretended = None

    def logprobs(self, sequences) -> list[list[float]]:
        version = self.updates if self.pretended is None else self.pretended
        return [[true_logprob(version, ids[:i], ids[i]) for i in range(1, len(ids))] for ids in sequences]

    def save(self, folder: Path) -> None:
        (folder / "learner.json").write_text(json.dumps([self.updates, self.history, self.trained]))

    def load(self, folder: Path) -> None:
        self.updates, self.history, self.trained = json.loads((folder / "learner.json").read_text())


class FakeSampler:
    """Tasks in turn."""

    def __init__(self, tasks) -> None:
        self.tasks = tasks
        self.drawn = 0

    def draw(self):
        self.drawn += 1
        return self.tasks[(self.drawn - 1) % len(self.tasks)]

    def state(self):
        return {"drawn": self.drawn}

    def restore(self, state) -> None:
        self.drawn = state["drawn"]


@dataclass
class FakeRun:
    """One attempt at a run in ``folder``; make another one in the same folder to resume."""

    parts: Parts
    learner: Any
    engines: list[FakeEngine]
    episodes: FakeEpisodes
    said: list[str]

    def close(self) -> None:
        self.parts.learner.close()


def luck(member) -> dict:
    """Half of the episodes pass, always the same ones."""
    digest = hashlib.sha256(f"{member.draw.group_id}-{member.index}".encode()).digest()
    return scored(float((member.index + digest[0]) % 2))


async def fake_run(
    folder: Path,
    *,
    episodes: FakeEpisodes | None = None,
    replicas: int = 1,
    steps: int = 4,
    staleness: int = 1,
    checkpoint_every: int = 1,
    max_lag: int | None = 4,
    make_learner: Callable[[], Any] = FakeLearner,
    is_recorded: bool = False,
) -> FakeRun:
    """Assemble a run of fakes, fresh or, where ``folder`` holds one, resumed; nothing but the fakes is fake.

    ``is_recorded``: the tokens are none of the engine's, so the probe compares it with itself.
    """
    tasks = [make_task(number) for number in range(5)]
    episodes = episodes or FakeEpisodes(luck)
    engines = [FakeEngine(str(number)) for number in range(replicas)]
    fresh = not (folder / "run.json").exists()
    run = RunDir.create(folder, TrainConfig(query="fake")) if fresh else RunDir.open(folder)
    activity = Activity()
    thread = LearnerThread(activity, folder=folder)
    await thread.start(make_learner)
    learner = thread._given
    launched: list = []
    ledger = Ledger(folder, on_end=launched.append)
    pool = Pool(max_lag=max_lag)
    rotation = Rotation(engines)
    score = engines[0].learner_that_agrees if is_recorded else thread.score
    publisher = WeightPublisher(rotation, Probe([(5, 6, 7), (8, 9, 8)], score), thread.write)
    episodes.version = lambda: publisher.version
    sampler = FakeSampler(tasks)
    dispatcher = Dispatcher(
        draw=sampler.draw,
        run=episodes.run,
        policy=FAKE_POLICY,
        pool=pool,
        ledger=ledger,
        admission=Admission(staleness, 2),
        version=lambda: publisher.version,
        group_size=2,
        slots=8,
        ready=rotation.require,
    )
    said: list[str] = []
    parts = Parts(
        run=run,
        policy=FAKE_POLICY,
        learner=thread,
        rotation=rotation,
        publisher=publisher,
        dispatcher=dispatcher,
        pool=pool,
        ledger=ledger,
        activity=activity,
        draws=sampler,
        model_dir=folder,
        steps=steps,
        groups_per_step=2,
        checkpoint_every=checkpoint_every,
        say=said.append,
        launched=launched,
    )
    await start_parts(parts, tasks)
    return FakeRun(parts, learner, engines, episodes, said)

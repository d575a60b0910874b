"""A whole run on fakes at its two ends: a fake engine below, a fake learner above, and everything real between.

Real: registry, task files, episodes, verifiers in their own processes, dispatcher, pool, ledger, checkpoints, commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.authoring import Family
from envsdk.authoring.find import declared_in, import_source
from envsdk.checks.report import CheckReport, CheckResult
from envsdk.episode.record import PolicyId
from registry.client import open_registry
from tests.fakes.chat import FakeTokenizer
from tests.fakes.engine import END, FakeEngine
from tests.fakes.learner import FakeLearner
from tests.fakes.sandbox import FakeProvider
from trainer import assemble
from trainer.engines.chat import ChatTokens
from trainer.engines.rotation import Rotation
from trainer.engines.token_policy import TokenPolicy

# A text of even length passes; in a file of its own, since the project's pytest plugin collects what tests declare.
FAMILY = '''
from envsdk import AgentSpec, Budget, Draw, family, verifier

@verifier
def even(answer: str) -> float:
    """1 for a text of even length."""
    return float(len(answer) % 2 == 0)

@family(
    verifier=even,
    levels={"n": (1, 2, 3, 4, 5, 6)},
    agent=AgentSpec(protocol="answer"),
    budget=Budget(turns=1, reply_tokens=6, episode_s=120, verify_s=60, total_s=300),
)
def parity(rng, *, n):
    """Write anything."""
    return Draw(instruction="Say something " + "very " * n + "short.", oracle="ab")
'''


def parity_registry(folder: Path) -> str:
    """A registry with six checked tasks of the family ``parity``; returns its URL."""
    module = folder / "parity_family.py"
    module.write_text(FAMILY)
    family = Family(next(found for found in declared_in(import_source(module).__name__) if found.is_family))
    tasks = [family.draw(level=level, seed=0, dest=folder / "drawn" / str(level["n"])) for level in family.settings()]
    reports = [
        CheckReport(
            slug=task.slug,
            task_digest=task.digests.task,
            verifier_digest=task.digests.verifier,
            verdict="pass",
            complete=True,
            checks=(CheckResult(check="oracle", outcome="pass"),),
        )
        for task in tasks
    ]
    url = f"sqlite:///{folder / 'registry.sqlite'}"
    with open_registry(url) as client:
        client.push(tasks, reports)
    return url


def every_other_passes(request) -> tuple[int, ...]:
    """Tokens whose text is of even length for members with an even place: ``1`` and ``11``, digits of the ids."""
    place = int(request.request_id.rsplit("-", 1)[-1].split(".")[0])
    return (11, END) if place % 2 == 0 else (3, END)


class FakeEnds:
    """What the patched assembly used, for a test to look at. ``version``: that of the model a run begins with."""

    def __init__(self) -> None:
        self.version = 0
        self.engine = FakeEngine(reply=every_other_passes, max_model_len=4096)
        self.learner = FakeLearner()
        self.provider = FakeProvider()


def fake_policy(engine: FakeEngine, **options) -> TokenPolicy:
    """The real token policy over a fake engine."""
    identity = PolicyId(model="fake", lineage="fake")
    return TokenPolicy(Rotation([engine]), ChatTokens(FakeTokenizer()), identity=identity, **options)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path) -> FakeEnds:
    """Replace engine, learner, sandboxes and the model's folder; a new engine and learner for every attempt."""
    ends = FakeEnds()

    async def start_policy(model_dir, *, engine, sampling, watcher, gpus):
        ends.engine = FakeEngine(reply=every_other_passes, max_model_len=4096, version=ends.version)
        return fake_policy(ends.engine, sampling=sampling, watcher=watcher)

    def make_learner(model_dir, config):
        ends.learner = FakeLearner()
        ends.learner.updates = ends.version
        return ends.learner

    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    monkeypatch.setattr(assemble, "start_policy", start_policy)
    monkeypatch.setattr(assemble, "_make_learner", make_learner)
    monkeypatch.setattr(assemble, "open_provider", lambda _name: ends.provider)
    monkeypatch.setattr(assemble, "resolve_model", lambda _name, progress: model)
    return ends

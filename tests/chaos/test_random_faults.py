"""Whatever the machinery does at whatever moment, an episode ends with one record and leaves no box open."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.run import run_episode
from envsdk.errors import EngineError, EnvsdkError, SandboxError, VerifierError
from envsdk.sandboxes.base import ExecResult, SandboxSpec, Snapshot
from envsdk.spec.model import Budget
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.sandbox import FakeProvider, FakeSandbox, Faults
from tests.fakes.tasks import script_task

TROUBLES: list[Exception] = [
    SandboxError("lost", code="channel_lost"),
    SandboxError("full", code="disk_full"),
    SandboxError("refused", code="engine_refused"),
    SandboxError("gone", code="no_such_file"),
    EngineError("down"),
    VerifierError("odd"),
    KeyError("defect"),
    OSError(5, "input/output error"),
    asyncio.CancelledError(),  # type: ignore[list-item]
]
METHODS = ("exec", "read", "write", "upload", "download", "snapshot", "counters", "alive", "kill_agent_processes")


class FragileSandbox(FakeSandbox):
    """Each call may fail, by the provider's dice."""

    dice: random.Random
    calm = False

    async def close(self) -> None:
        self.calm = True  # a box that cannot be ended is the provider's to reap, not the episode's
        await super().close()

    def __getattribute__(self, name: str) -> Any:
        real = super().__getattribute__(name)
        if name not in METHODS or super().__getattribute__("calm"):
            return real

        async def maybe(*args: Any, **options: Any) -> Any:
            if self.dice.random() < 0.15:
                raise self.dice.choice(TROUBLES)
            if name == "exec" and self.dice.random() < 0.1:
                return ExecResult(exit_code=None, channel_lost=True)
            return await real(*args, **options)

        return maybe


class FragileProvider(FakeProvider):
    """Hands out fragile boxes, or fails to."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(faults=Faults())
        self.dice = dice

    def _fragile(self, spec: SandboxSpec, base: Path | None = None) -> FragileSandbox:
        if self.dice.random() < 0.1:
            raise self.dice.choice(TROUBLES)
        box = FragileSandbox(spec, self.faults, base=base)
        box.dice = self.dice
        self.handed_out.append(box)
        return box

    async def acquire(self, spec: SandboxSpec, *, timeout_s: float = 60.0) -> Any:
        return self._fragile(spec)

    async def start_from(self, snapshot: Snapshot, spec: SandboxSpec, n: int = 1) -> list[Any]:
        return [self._fragile(spec, Path(snapshot.id)) for _ in range(n)]


@pytest.mark.parametrize("mode", ["separate", "shared"])
@pytest.mark.parametrize("block", range(8))
async def test_one_record_and_nothing_open(tmp_path: Path, mode: str, block: int) -> None:
    task = script_task(tmp_path, mode=mode, budget=Budget(step_s=5, episode_s=10, verify_s=5, turns=4))
    for seed in range(block * 12, block * 12 + 12):
        provider = FragileProvider(random.Random(seed))
        policy = ScriptedPolicy(["echo 42 > /app/total.txt", "true", "done"])
        try:
            record = await run_episode(task, ConversationAgent(policy), provider)
        except EnvsdkError as error:
            pytest.fail(f"seed {seed} raised {error!r}")
        outcome = record.outcome
        assert (outcome.reward is None) == (not outcome.graded), (seed, record.facts)
        if outcome.outcome_class == "model_failure":
            # Only troubles of the machinery were made here: the work was done, so nothing may be held against the model.
            assert not record.turns or record.turns[0].exit_code != 0, (seed, record.facts)
        assert provider.open_count == 0, seed
        assert policy.open_sessions == 0, seed

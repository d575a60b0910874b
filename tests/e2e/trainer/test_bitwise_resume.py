"""In lock-step on the CPU, with recorded episodes: killed and resumed equals never killed, bit for bit.

The learner is the real one on the tiny model; engine and episodes are fakes that replay the same tokens.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch

from envsdk.episode.record import TokenTrace, VersionSpan
from tests.fakes.episodes import FakeEpisodes
from tests.fakes.learner import fake_run, luck
from trainer.learner import Learner
from trainer.learner_config import LearnerConfig
from trainer.loop import run_steps
from trainer.models import tiny_model_dir

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of torch, while it is imported

OPTIONS = {"staleness": 0, "steps": 4, "checkpoint_every": 1}


class Recorded(FakeEpisodes):
    """Episodes with tokens that depend on their place alone, so that a resumed run replays them."""

    async def run(self, member, grading):
        record = await super().run(member, grading)
        prompt = tuple(range(100, 112))
        reply = tuple(200 + 7 * member.draw.order + 3 * member.index + step for step in range(5))
        trace = TokenTrace(
            ids=prompt + reply,
            loss_mask=(0,) * len(prompt) + (1,) * len(reply),
            logprobs=(0.0,) * len(prompt) + tuple(-10.0 - 0.01 * step for step in range(len(reply))),
            versions=(VersionSpan(version=self.version(), start=len(prompt), end=len(prompt) + len(reply)),),
            prompt_len=len(prompt),
        )
        return record.model_copy(update={"tokens": trace})


def make_learner() -> Learner:
    config = LearnerConfig(lr=1e-3, deterministic=True, threads=1, warmup_steps=2, seed=11)
    return Learner(tiny_model_dir(), config)


async def trained(folder: Path, *, stop_after: int | None = None) -> dict[str, torch.Tensor]:
    run = await fake_run(folder, episodes=Recorded(luck), make_learner=make_learner, is_recorded=True, **OPTIONS)
    reached = asyncio.Event()
    run.parts.say = lambda text: reached.set() if stop_after and text.startswith(f"step {stop_after:>3}/") else None
    work = asyncio.create_task(run_steps(run.parts))
    if stop_after is None:
        await work
    else:
        await reached.wait()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    run.close()
    return {name: weight.clone() for name, weight in run.learner.weights.masters.items()}


@pytest.mark.parametrize("kill", [1, 3])
async def test_weights_after_a_kill_and_a_resume_are_those_of_an_uninterrupted_run(tmp_path: Path, kill: int) -> None:
    whole = await trained(tmp_path / "whole")
    await trained(tmp_path / "killed", stop_after=kill)
    resumed = await trained(tmp_path / "killed")
    untouched = dict(make_learner().weights.masters.items())
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert not all(torch.equal(whole[name], untouched[name]) for name in whole)

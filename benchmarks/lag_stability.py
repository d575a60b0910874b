"""Which loss still learns when its episodes are old: presets against lag, on a model small enough for many seeds.

    python benchmarks/lag_stability.py [--steps 80] [--seeds 3] [--lags 0,4,8] [--presets default,dapo,tis,...]

The learner is the real one; the engine is a copy of its weights, ``lag`` versions behind, that samples replies of three
tokens. A reply earns 1 when its first token repeats the prompt's last. Printed for each preset and lag: the pass rate
over the last ten steps (mean and range over seeds) and the lowest effective sample size of any step, one Markdown row
each. ``default`` is what a run has that names no preset; ``unclipped`` is an importance-weighted policy gradient
without a bound, for comparison: what a lag does to a loss that nothing protects.
"""

from __future__ import annotations

import argparse
import copy
import random
import statistics
from collections import deque
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from envsdk.episode.record import EpisodeRecord, PolicyId, TokenTrace, VersionSpan
from envsdk.errors import EnvsdkError
from tests.fakes.outcomes import finished
from trainer.batch import build_batch
from trainer.learner import Learner
from trainer.learner_config import LearnerConfig
from trainer.loss.config import LossConfig
from trainer.loss.preset import PRESETS

VOCABULARY, PROMPT, REPLY, GROUPS, SAMPLES = 12, 4, 3, 8, 8
Loss = str | LossConfig
LOSSES: dict[str, Loss] = {
    "default": LossConfig(),
    **{name: name for name in PRESETS},
    "unclipped": LossConfig(loss="tis_pg", cap=1e6),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One training: pass rate of each step, and the lowest effective sample size."""

    passed: list[float]
    lowest_ess: float


def tiny_model(seed: int) -> Any:
    """A random two-layer Llama."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
        )
    )


def episodes(engine: Any, version: int, draw: random.Random, sampler: torch.Generator) -> list[list[EpisodeRecord]]:
    """Groups of replies that ``engine`` samples, with its logprobs."""
    prompts = [[draw.randrange(VOCABULARY) for _ in range(PROMPT)] for _ in range(GROUPS)]
    ids = torch.tensor([prompt for prompt in prompts for _ in range(SAMPLES)])
    logprobs = torch.zeros(len(ids), 0)
    with torch.no_grad():
        for _ in range(REPLY):
            logits = engine(input_ids=ids).logits[:, -1].log_softmax(-1)
            chosen = torch.multinomial(logits.exp(), 1, generator=sampler)
            ids = torch.cat([ids, chosen], dim=1)
            logprobs = torch.cat([logprobs, logits.gather(1, chosen)], dim=1)
    rows = zip(ids.tolist(), logprobs.tolist(), strict=True)
    records = [_record(n, row, own, version) for n, (row, own) in enumerate(rows)]
    return [records[n : n + SAMPLES] for n in range(0, len(records), SAMPLES)]


def _record(number: int, ids: list[int], logprobs: list[float], version: int) -> EpisodeRecord:
    reward = float(ids[PROMPT] == ids[PROMPT - 1])
    return EpisodeRecord(
        episode_id=str(number),
        slug="repeat",
        task_digest="",
        verifier_digest="",
        group_id=str(number // SAMPLES),
        policy=PolicyId(model="tiny"),
        outcome=finished(reward),
        tokens=TokenTrace(
            ids=tuple(ids),
            loss_mask=(0,) * PROMPT + (1,) * REPLY,
            logprobs=(0.0,) * PROMPT + tuple(logprobs),
            versions=(VersionSpan(version=version, start=PROMPT, end=PROMPT + REPLY),),
            prompt_len=PROMPT,
        ),
    )


def train(loss: Loss, *, lag: int, seed: int, steps: int, lr: float) -> Run:
    """Train one model; episodes of step n come from the weights of step n - ``lag``."""
    draw, sampler = random.Random(seed), torch.Generator().manual_seed(seed)
    settings = {"lr": lr, "precision": "fp32", "loss": loss, "batch": {"max_lag": None}, "threads": 1, "max_skipped": 1}
    config = LearnerConfig.model_validate(settings).for_replies(REPLY)
    learner = Learner(None, config, model=tiny_model(seed))
    past: deque[tuple[int, Any]] = deque([(0, copy.deepcopy(learner.model))], maxlen=lag + 1)
    passed, lowest = [], 1.0
    for version in range(steps):
        made_by, engine = past[0]
        groups = episodes(engine, made_by, draw, sampler)
        passed.append(statistics.fmean(r.outcome.reward or 0.0 for group in groups for r in group))
        try:
            batch = build_batch(groups, trainer_version=version, config=config.batch)
            metrics = learner.step(learner.pack(batch))
        except EnvsdkError:
            return Run([*passed, *[0.0] * (steps - len(passed))], 0.0)
        lowest = min(lowest, metrics.get("all/ess_token", 1.0))
        past.append((version + 1, copy.deepcopy(learner.model)))
    return Run(passed, lowest)


def main() -> None:
    """Run all presets at all lags and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lags", default="0,4,8")
    parser.add_argument("--presets", default=",".join(LOSSES))
    parser.add_argument("--lr", type=float, default=5e-3)
    given = parser.parse_args()
    print(f"{given.steps} steps at lr {given.lr}, {GROUPS} x {SAMPLES} episodes each, {given.seeds} seeds\n")
    print("| loss | lag | pass rate, last 10 steps (range) | lowest ESS |\n| --- | --- | --- | --- |", flush=True)
    for name in given.presets.split(","):
        for lag in map(int, given.lags.split(",")):
            runs = [
                train(LOSSES[name], lag=lag, seed=seed, steps=given.steps, lr=given.lr) for seed in range(given.seeds)
            ]
            rates = [statistics.fmean(run.passed[-10:]) for run in runs]
            span = f"{min(rates):.2f}-{max(rates):.2f}"
            lowest = min(run.lowest_ess for run in runs)
            print(f"| {name} | {lag} | {statistics.fmean(rates):.2f} ({span}) | {lowest:.2f} |", flush=True)


if __name__ == "__main__":
    main()

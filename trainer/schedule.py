"""The learning rate of a step: linear warm-up, then constant, linear or cosine.

A pure function of the step's number, so that a resumed run goes on where it stood without a schedule's state.
"""

from __future__ import annotations

import math

from trainer.learner_config import LearnerConfig


def learning_rate(config: LearnerConfig, *, step: int) -> float:
    """Learning rate of optimizer step number ``step``, counted from 0; the schedule's only state is that number."""
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    if config.decay == "constant":
        return config.lr
    done = min(1.0, (step - config.warmup_steps) / (config.total_steps - config.warmup_steps))
    return config.lr * (1 - done if config.decay == "linear" else (1 + math.cos(math.pi * done)) / 2)

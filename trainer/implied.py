"""Settings that nobody set because they follow from others: filled in once, when a run's tasks are known.

Promised: what was set is never changed, and a resumed run gets the same, since its tasks are pinned.
"""

from __future__ import annotations

from collections.abc import Sequence

from envsdk.spec.model import Task
from trainer.config import TrainConfig


def implied(config: TrainConfig, tasks: Sequence[Task]) -> TrainConfig:
    """``config`` for a run on ``tasks``.

    The length that a loss divides by is that of the longest replies; learner and engine take the run's seed.
    """
    learner = config.learner.for_replies(longest_replies(tasks, context=config.engine.max_model_len))
    return config.model_copy(
        update={
            "learner": learner.model_copy(update={"seed": _or(learner.seed, config.seed)}),
            "engine": config.engine.model_copy(update={"seed": _or(config.engine.seed, config.seed)}),
        }
    )


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def longest_replies(tasks: Sequence[Task], *, context: int) -> int:
    """Tokens that an episode of any of ``tasks`` may generate in all its turns, in a context of so many tokens."""
    budgets = [task.spec.budget for task in tasks]
    return min(context, max(min(b.turns * b.reply_tokens, b.episode_tokens) for b in budgets))

"""Settings that nobody set because they follow from others: filled in once, when a run's tasks and place are known.

Promised: what was set is never changed, and a resumed run gets the same on the same machine, for its tasks are pinned.
"""

from __future__ import annotations

from collections.abc import Sequence

from envsdk.spec.model import Task
from trainer.config import TrainConfig
from trainer.placement import Placement, sharing


def implied(config: TrainConfig, tasks: Sequence[Task], placement: Placement) -> TrainConfig:
    """``config`` for a run on ``tasks``.

    The length that a loss divides by is that of the longest replies; learner and engine take the run's seed, and the
    devices of ``placement``.
    """
    learner = config.learner.for_replies(longest_replies(tasks, context=config.engine.max_model_len))
    engine = sharing(config.engine, placement)
    devices = {"device": placement.learner or learner.device}
    return config.model_copy(
        update={
            "learner": learner.model_copy(update={"seed": _or(learner.seed, config.seed), **devices}),
            "engine": engine.model_copy(update={"seed": _or(engine.seed, config.seed)}),
        }
    )


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def longest_replies(tasks: Sequence[Task], *, context: int) -> int:
    """Tokens that an episode of any of ``tasks`` may generate in all its turns, in a context of so many tokens."""
    budgets = [task.spec.budget for task in tasks]
    return min(context, max(min(b.turns * b.reply_tokens, b.episode_tokens) for b in budgets))

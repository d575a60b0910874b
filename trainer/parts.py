"""The rooms of one run, ready to work; `trainer.assemble` makes them, `trainer.loop` runs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from envsdk.episode.record import EpisodeRecord, PolicyId
from envsdk.spec.model import Task
from trainer.activity import Activity
from trainer.dispatch import Dispatcher
from trainer.engines.rotation import Rotation
from trainer.learner_thread import LearnerThread
from trainer.ledger import Ledger
from trainer.pool import Pool
from trainer.run_dir import RunDir
from trainer.weights import WeightPublisher


class Draws(Protocol):
    """Which task comes next; its state is part of a checkpoint. `trainer.look_ahead.LookAhead` is one."""

    def draw(self) -> Task: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: Mapping[str, Any]) -> None: ...


@dataclass(slots=True)
class Parts:
    """Everything `trainer.loop.run_steps` works with.

    ``launched``: episodes that ended since the last step, kept or not; the ledger's listener fills it. ``zero``: the
    timeline's 0 on the monotonic clock, ``zero_unix`` the same moment in Unix time.
    """

    run: RunDir
    policy: PolicyId
    learner: LearnerThread
    rotation: Rotation
    publisher: WeightPublisher
    dispatcher: Dispatcher
    pool: Pool
    ledger: Ledger
    activity: Activity
    draws: Draws
    model_dir: Path
    steps: int
    groups_per_step: int
    checkpoint_every: int
    say: Callable[[str], None] = lambda _: None
    first_step: int = 1
    launched: list[EpisodeRecord] = field(default_factory=list)
    now: Callable[[], float] = time.monotonic
    zero: float = field(default_factory=time.monotonic)
    zero_unix: float = field(default_factory=time.time)

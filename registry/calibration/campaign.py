"""One run of measuring as it goes: what came of each task, what was spent, and how long it may still take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from registry.saturation.screening import AT_MOST, Verdict

_HOPELESS = 32
_TELLING_S = 5.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What measuring one task came to; ``n`` graded and ``ungraded`` episodes were spent on it now.

    ``likeliest`` is the class that holds most of the posterior, ``chance`` how much: where the verdict is ``uncertain``
    there is no more to say.
    """

    slug: str
    task_digest: str
    verifier_digest: str
    verdict: Verdict
    likeliest: Verdict
    chance: float
    mean: float
    low: float
    high: float
    n: int
    ungraded: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a campaign stands; ``eta_s`` takes the episodes to come to end as fast as they did since the first ended.

    `None` until there is something to go by: an engine that starts for a minute says nothing about tasks.
    """

    done: int
    tasks: int
    episodes: int
    elapsed_s: float
    eta_s: float | None


@dataclass(slots=True)
class Campaign:
    """One run of measuring, as it goes: what was spent, and what a fixed 32 episodes a task would have taken more.

    ``ended`` counts the episodes of looks under way, too, ``episodes`` those that are in the registry; ``expected`` are
    the episodes of the whole run, as far as it is planned. ``looking`` tasks get a look in this round, the ``round``-th
    after the first look (0). ``why_ungraded`` says of the newest episode without a grade what ended it. ``ready`` says
    whether the policy can answer yet.
    """

    tasks: int
    ready: Callable[[], bool] = lambda: True
    started: float = field(default_factory=time.monotonic)
    measured: list[Measured] = field(default_factory=list)
    episodes: int = 0
    ended: int = 0
    generated_tokens: int = 0
    ungraded: int = 0
    why_ungraded: str = ""
    round: int = 0
    looking: int = 0
    expected: float = 0.0
    first_ended: float | None = None

    @property
    def hopeless(self) -> bool:
        """So many episodes without a single grade that more would get none either."""
        return self.episodes >= _HOPELESS and self.ungraded == self.episodes

    @property
    def fixed(self) -> int:
        """Episodes that a fixed number a task would have taken for the tasks that are done."""
        return AT_MOST * len(self.measured)

    def note_ended(self) -> None:
        """One more episode has ended."""
        self.ended += 1
        if self.first_ended is None:
            self.first_ended = time.monotonic()

    def progress(self) -> Progress:
        """Where it stands."""
        now = time.monotonic()
        since = 0.0 if self.first_ended is None else now - self.first_ended
        eta_s = None
        if self.ended and since >= _TELLING_S:
            eta_s = since / self.ended * max(0.0, self.expected - self.ended)
        return Progress(len(self.measured), self.tasks, self.ended, now - self.started, eta_s)

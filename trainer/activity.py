"""Who was busy while: the engine, the learner, the episodes' environments. Seconds, added up at every change.

The one figure nobody else reports is ``engine_idle_env_s``: no request ran although at least one episode was in its
environment, that is, the dear device waited for a container. One event loop owns it; the learner's thread is told of
through the loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Totals:
    """Since the start. ``overlap_s``: engine and learner were busy at once. Tokens are those of finished turns.

    ``prefix_hit_tokens``: of the prompts' tokens, those found in an engine's prefix cache.
    """

    wall_s: float = 0.0
    engine_busy_s: float = 0.0
    engine_idle_env_s: float = 0.0
    learner_busy_s: float = 0.0
    overlap_s: float = 0.0
    prompt_tokens: int = 0
    prefix_hit_tokens: int = 0
    generated_tokens: int = 0

    @property
    def overlap_share(self) -> float:
        """Share of the learner's time in which tokens were generated as well."""
        return self.overlap_s / self.learner_busy_s if self.learner_busy_s else 0.0

    def since(self, before: Totals) -> Totals:
        """What was added after ``before``."""
        return Totals(**{name: getattr(self, name) - getattr(before, name) for name in self.__slots__})


class Activity:
    """Hears of changes, adds up the time between them."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last = now()
        self._totals = Totals()
        self._alive: set[str] = set()
        self._generating: set[str] = set()
        self._learning = False

    @property
    def totals(self) -> Totals:
        """Up to now."""
        self._add()
        return self._totals

    def started(self, episode_id: str) -> None:
        """An episode has its slot."""
        self._add()
        self._alive.add(episode_id)

    def ended(self, episode_id: str) -> None:
        """It is verified, or lost."""
        self._add()
        self._alive.discard(episode_id)
        self._generating.discard(episode_id)

    def generating(self, session_id: str) -> None:
        """A session waits for the engine."""
        self._add()
        self._generating.add(session_id)

    def acting(self, session_id: str) -> None:
        """Its reply is there; what follows is its environment's time."""
        self._add()
        self._generating.discard(session_id)

    def served(self, *, prompt_tokens: int, cached_tokens: int, generated_tokens: int) -> None:
        """A turn was served."""
        before = self._totals
        self._totals = replace(
            before,
            prompt_tokens=before.prompt_tokens + prompt_tokens,
            prefix_hit_tokens=before.prefix_hit_tokens + cached_tokens,
            generated_tokens=before.generated_tokens + generated_tokens,
        )

    def learning(self, busy: bool) -> None:
        """The learner has begun or ended a step."""
        self._add()
        self._learning = busy

    def _add(self) -> None:
        now = self._now()
        passed, self._last = now - self._last, now
        busy = bool(self._generating)
        before = self._totals
        self._totals = replace(
            before,
            wall_s=before.wall_s + passed,
            engine_busy_s=before.engine_busy_s + (passed if busy else 0.0),
            engine_idle_env_s=before.engine_idle_env_s + (passed if self._alive and not busy else 0.0),
            learner_busy_s=before.learner_busy_s + (passed if self._learning else 0.0),
            overlap_s=before.overlap_s + (passed if busy and self._learning else 0.0),
        )

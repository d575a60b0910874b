"""The clocks of one episode: each starts when its phase starts, never when it queues; who held it is recorded.

Times are seconds on the monotonic clock. ``held`` splits the episode's time by who kept the others waiting: the model
(tokens generated at the engine's speed), a tool (the model's command), inference (waiting for the engine), and the
harness (all the rest); ``at_end`` names who held it when the acting ended. Stamps are the raw material of time to
trainable batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from envsdk.episode.record import PhaseTimes
from envsdk.spec.model import Budget

Holder = Literal["model", "tool", "inference"]
Phase = Literal["queue", "build", "acquire", "setup", "verify"]
OnStamp = Callable[[str, float], None]
_MOMENT_S = 0.1


class EpisodeClock:
    """Measures one episode; owned by `envsdk.episode.run.run_episode`, used by its agent.

    Args:
        budget: the task's.
        on_stamp: hears each stamp as (name, seconds since the start) when it is taken.
    """

    def __init__(self, budget: Budget, *, on_stamp: OnStamp | None = None) -> None:
        self.budget = budget
        self.started_at = time.time()
        self._zero = time.monotonic()
        self._on_stamp = on_stamp
        self.stamps: dict[str, float] = {}
        self._phases: dict[str, float] = {}
        self._held: dict[str, float] = {"model": 0.0, "tool": 0.0, "inference": 0.0}
        self._prefill_s = 0.0
        self._decode_s = 0.0
        self._acting_since: float | None = None
        self._acted_s: float | None = None
        self._last: tuple[Holder, float] | None = None
        self._at_end = ""
        self._wall_since = 0.0
        self._wall_acted_s = 0.0

    def now(self) -> float:
        """Seconds since the episode was dispatched."""
        return time.monotonic() - self._zero

    def stamp(self, name: str, *, first_only: bool = False, at: float | None = None) -> None:
        """Record when something happened: now, or ``at`` seconds after the dispatch.

        A later stamp of the same name replaces the earlier unless ``first_only``.
        """
        if first_only and name in self.stamps:
            return
        self.stamps[name] = round(self.now() if at is None else at, 6)
        if self._on_stamp is not None:
            self._on_stamp(name, self.stamps[name])

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Time a phase, however it ends."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0.0) + time.monotonic() - began

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Run the episode's own clock: from the agent's first moment to its last."""
        self._acting_since, self._wall_since = time.monotonic(), time.time()
        try:
            yield
        finally:
            now = time.monotonic()
            self._acted_s = now - self._acting_since
            holder, until = self._last or ("harness", 0.0)
            self._at_end = holder if now - until < _MOMENT_S else "harness"
            self._wall_acted_s = time.time() - self._wall_since

    @contextmanager
    def held_by(self, holder: Holder) -> Iterator[None]:
        """Count the time inside as held by ``holder``."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.hold(holder, time.monotonic() - began)

    def hold(self, holder: Holder, seconds: float) -> None:
        """Count ``seconds`` as held by ``holder``."""
        self._held[holder] += max(0.0, seconds)
        if seconds > 0:
            self._last = (holder, time.monotonic())

    def generated(self, *, wall_s: float, queue_s: float, prefill_s: float, decode_s: float) -> None:
        """Count one reply: what the engine queued is inference's, the rest of the wait the model's."""
        waited = min(wall_s, queue_s)
        self.hold("inference", waited)
        self.hold("model", wall_s - waited)
        self._prefill_s += prefill_s
        self._decode_s += decode_s

    def left_s(self) -> float:
        """Seconds left of the episode's budget, and of the total's, whichever is less; at least 0."""
        acted = 0.0 if self._acting_since is None else time.monotonic() - self._acting_since
        return max(0.0, min(self.budget.episode_s - acted, self.budget.total_s - self.now()))

    def facts(self) -> dict[str, Any]:
        """The clock as facts of the outcome table."""
        acted = self._acted_s if self._acted_s is not None else 0.0
        harness = max(0.0, acted - sum(self._held.values()))
        return {
            "budget_s": self.budget.episode_s,
            **({"at_end": self._at_end} if self._at_end else {}),
            "held_s": {**{name: round(value, 3) for name, value in self._held.items()}, "harness": round(harness, 3)},
            "wall_s": round(self._wall_acted_s, 3),
            "monotonic_s": round(acted, 3),
        }

    def times(self) -> PhaseTimes:
        """Seconds per phase so far; `None` for a phase that did not happen."""
        seconds = {f"{name}_s": round(value, 6) for name, value in self._phases.items()}
        acted = self._acted_s is not None
        return PhaseTimes(
            **seconds,
            prefill_s=round(self._prefill_s, 6) if acted else None,
            decode_s=round(self._decode_s, 6) if acted else None,
            tool_s=round(self._held["tool"], 6) if acted else None,
            total_s=round(self.now(), 6),
        )

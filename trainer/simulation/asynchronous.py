"""Asynchronous training on a trace: dispatch, completion, take and lag, with the scheduler's own decisions.

Promises: at equal times completions come first (in dispatch order), then the end of training, the take, and new starts.
Running trajectories go on under new weights, so a member's oldest token has the version at its start.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainer.admission import Admission
from trainer.pool_policy import TakePolicy, choose, too_old
from trainer.simulation.trace import TICKS_PER_S, Last, Share, TraceGroup, composition, members_of, ticks


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A group was dispatched; ``running`` and ``accepted`` stand before it."""

    group: str
    time_s: float
    version: int
    running: int
    accepted: int
    limit: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A group became ready, by the end of its ``last`` member."""

    group: str
    time_s: float
    oldest_version: int
    last: Last


@dataclass(frozen=True, slots=True)
class Drop:
    """A ready group was thrown away at an attempt to take, since it was ``lag`` versions old."""

    group: str
    time_s: float
    lag: int


@dataclass(frozen=True, slots=True)
class Step:
    """One batch taken. Times in seconds; ``lag`` and ``queued_s`` per group of the batch.

    ``t2tb_s``, time to trainable batch: ``batch_ready_s`` minus the previous take, 0 if the groups were ready already;
    both are `None` under a hard lag bound, where a ready group may still be dropped.
    """

    step: int
    version: int
    request_s: float
    take_s: float
    since_previous_take_s: float
    from_first_dispatch_s: float
    groups: tuple[str, ...]
    lag: tuple[int, ...]
    queued_s: tuple[float, ...]
    last_to_complete: str
    carried_complete: tuple[str, ...]
    carried_running: tuple[str, ...]
    batch_ready_s: float | None
    t2tb_s: float | None

    @property
    def wait_s(self) -> float:
        """How long the free learner waited for this batch."""
        return self.take_s - self.request_s


@dataclass(frozen=True, slots=True)
class AsyncResult:
    """The whole trace, up to the last take."""

    dispatch: tuple[Dispatch, ...]
    ready: tuple[Completion, ...]
    steps: tuple[Step, ...]
    dropped: tuple[Drop, ...]
    kept_share: Share
    launched_share: Share


@dataclass(frozen=True, slots=True)
class AsyncSetup:
    """The scheduler's settings.

    ``train_s`` is one number, or one per step; ``slots`` and ``max_lag`` are `None` for no bound.
    """

    admission: Admission
    steps: int
    train_s: float | Sequence[float]
    slots: int | None = None
    policy: TakePolicy = "oldest_complete_first"
    max_lag: int | None = None

    def train_ticks(self, step: int) -> int:
        """Time from taking batch ``step`` to its weights being in the engine."""
        return ticks(self.train_s if isinstance(self.train_s, (int, float)) else self.train_s[step])


@dataclass(slots=True)
class _Group:
    trace: TraceGroup
    dispatch_order: int
    dispatched_at: int
    unfinished: int
    oldest_version: int
    completion_order: int = -1
    completed_at: int = -1


@dataclass(slots=True)
class _Log:
    dispatch: list[Dispatch] = field(default_factory=list)
    ready: list[Completion] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    dropped: list[Drop] = field(default_factory=list)
    started: list[tuple[float, bool]] = field(default_factory=list)
    kept: list[TraceGroup] = field(default_factory=list)


def simulate_async(groups: Sequence[TraceGroup], setup: AsyncSetup) -> AsyncResult:
    """Train ``setup.steps`` steps on ``groups``, in dispatch order.

    Raises:
        ValueError: the trace ends before the last batch is taken.
    """
    return _Simulation(groups, setup).run()


class _Simulation:
    def __init__(self, groups: Sequence[TraceGroup], setup: AsyncSetup) -> None:
        self.setup = setup
        self.to_dispatch = deque(groups)
        self.waiting: deque[tuple[_Group, int]] = deque()
        self.ends: list[tuple[int, int, int]] = []  # (tick, dispatch order, member)
        self.running: dict[int, _Group] = {}
        self.ready: list[_Group] = []
        self.log = _Log()
        self.now = self.version = self.accepted = self.requested_at = self.previous_take = 0
        self.training_until: int | None = None
        self.batch_ready_at: int | None = None

    def run(self) -> AsyncResult:
        while True:
            self._complete()
            if self.training_until == self.now:
                self.version += 1
                self.training_until, self.requested_at = None, self.now
            if self.training_until is None:
                self._try_to_take()
            self._start()
            if len(self.log.steps) == self.setup.steps:
                return self._result()
            upcoming = [self.ends[0][0]] if self.ends else []
            if self.training_until is not None:
                upcoming.append(self.training_until)
            if not upcoming:
                raise ValueError(
                    f"the trace ends after {len(self.log.steps)} of {self.setup.steps} steps: it has too few groups"
                )
            self.now = min(upcoming)

    def _complete(self) -> None:
        while self.ends and self.ends[0][0] == self.now:
            _, order, place = heapq.heappop(self.ends)
            group = self.running[order]
            group.unfinished -= 1
            if group.unfinished:
                continue
            del self.running[order]
            group.completed_at, group.completion_order = self.now, len(self.log.ready)
            self.ready.append(group)
            self.accepted += 1
            started = self.now - ticks(group.trace.durations_s[place])
            last = Last(group.trace.id, place, started / TICKS_PER_S)
            self.log.ready.append(Completion(group.trace.id, self.now / TICKS_PER_S, group.oldest_version, last))
            self._note_batch_ready()

    def _note_batch_ready(self) -> None:
        if self.batch_ready_at is None and len(self.ready) >= self.setup.admission.groups_per_batch:
            self.batch_ready_at = self.now

    def _try_to_take(self) -> None:
        for group in too_old(self.ready, version=self.version, max_lag=self.setup.max_lag):
            self.ready.remove(group)
            self.accepted -= 1
            self.log.dropped.append(Drop(group.trace.id, self.now / TICKS_PER_S, self.version - group.oldest_version))
        batch = choose(self.ready, count=self.setup.admission.groups_per_batch, policy=self.setup.policy)
        if batch is None:
            return
        self.ready = [group for group in self.ready if group not in batch]
        self.log.steps.append(self._step(batch))
        self.log.kept.extend(group.trace for group in batch)
        self.training_until = self.now + self.setup.train_ticks(len(self.log.steps) - 1)
        self.previous_take, self.batch_ready_at = self.now, None
        self._note_batch_ready()

    def _step(self, batch: list[_Group]) -> Step:
        bounded = self.setup.max_lag is not None or self.batch_ready_at is None
        return Step(
            step=len(self.log.steps),
            version=self.version,
            request_s=self.requested_at / TICKS_PER_S,
            take_s=self.now / TICKS_PER_S,
            since_previous_take_s=(self.now - self.previous_take) / TICKS_PER_S,
            from_first_dispatch_s=(self.now - min(group.dispatched_at for group in batch)) / TICKS_PER_S,
            groups=tuple(group.trace.id for group in batch),
            lag=tuple(self.version - group.oldest_version for group in batch),
            queued_s=tuple((self.now - group.completed_at) / TICKS_PER_S for group in batch),
            last_to_complete=max(batch, key=lambda group: group.completion_order).trace.id,
            carried_complete=tuple(
                group.trace.id for group in sorted(self.ready, key=lambda group: group.dispatch_order)
            ),
            carried_running=tuple(self.running[order].trace.id for order in sorted(self.running)),
            batch_ready_s=None if bounded else (self.batch_ready_at or 0) / TICKS_PER_S,
            t2tb_s=None if bounded else ((self.batch_ready_at or 0) - self.previous_take) / TICKS_PER_S,
        )

    def _start(self) -> None:
        self._start_waiting()
        while self._slot_is_free() and not self.waiting and self.to_dispatch and self._admitted():
            trace = self.to_dispatch.popleft()
            group = _Group(trace, len(self.log.dispatch), self.now, len(trace.durations_s), self.version)
            limit = self.setup.admission.limit(self.version)
            self.log.dispatch.append(
                Dispatch(trace.id, self.now / TICKS_PER_S, self.version, len(self.running), self.accepted, limit)
            )
            self.running[group.dispatch_order] = group
            self.waiting.extend((group, member) for member in range(len(trace.durations_s)))
            self._start_waiting()

    def _start_waiting(self) -> None:
        while self.waiting and self._slot_is_free():
            group, member = self.waiting.popleft()
            group.oldest_version = min(group.oldest_version, self.version)
            duration_s = group.trace.durations_s[member]
            heapq.heappush(self.ends, (self.now + ticks(duration_s), group.dispatch_order, member))
            self.log.started.append((duration_s, group.trace.passed[member]))

    def _slot_is_free(self) -> bool:
        return self.setup.slots is None or len(self.ends) < self.setup.slots

    def _admitted(self) -> bool:
        return self.setup.admission.admits(running=len(self.running), accepted=self.accepted, version=self.version)

    def _result(self) -> AsyncResult:
        return AsyncResult(
            dispatch=tuple(self.log.dispatch),
            ready=tuple(self.log.ready),
            steps=tuple(self.log.steps),
            dropped=tuple(self.log.dropped),
            kept_share=composition(members_of(self.log.kept)),
            launched_share=composition(self.log.started),
        )

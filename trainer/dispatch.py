"""Dispatch: which group starts when, and which is given up.

    draw a task -> admitted? -> G places (`trainer.places`) -> all ended -> signal? -> pool

A group starts when a slot is free, no started member waits for one, and the admission rule agrees. Groups that carry no
signal are rejected, and groups that the next version would make too old are cancelled before the pause: both leave the
accepted count, so their place is filled again, and both are counted. One event loop owns a dispatcher.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from envsdk.episode.record import PolicyId
from envsdk.errors import FaultyError
from envsdk.spec.model import Task
from trainer.admission import Admission
from trainer.group import CompleteGroup, Draw, EndedMember
from trainer.ledger import Ledger
from trainer.places import Flight, Places, RunMember
from trainer.pool import Pool
from trainer.pool_policy import doomed
from trainer.recovery import LoopState, Recovered
from trainer.slots import Slots

_GIVE_UP_BATCHES = 10


@dataclass(slots=True)
class DispatchCounts:
    """What became of the groups so far. ``refills``: places tried again; ``exhausted``: in vain."""

    dispatched: int = 0
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    refills: int = 0
    exhausted: int = 0


class Dispatcher:
    """Keeps groups in flight until it is stopped.

    Args:
        draw: the next task.
        run: one episode, start to end; its failures are records, not exceptions.
        policy: whose episodes they are.
        pool: takes complete groups; what it drops comes back here.
        ledger: hears of every start and end.
        admission: how far to run ahead.
        version: the committed weight version.
        first_version: that of the model the run began with, above 0 where it was trained before.
        group_size: members of a group.
        slots: episodes that may act at once.
        verifications: episodes that may be verified at once, beside them.
        refills: how often one place of a group may be tried again.
        prefix: what the ids of groups begin with, so that no other run has the same; it holds no ``g``.
        ready: raises where no episode can run any more; asked before a group starts.
        completed: hears of every complete group, whether it will be trained or not.
        now: the run's monotonic clock.
    """

    def __init__(
        self,
        *,
        draw: Callable[[], Task],
        run: RunMember,
        policy: PolicyId,
        pool: Pool,
        ledger: Ledger,
        admission: Admission,
        version: Callable[[], int],
        group_size: int,
        slots: int,
        verifications: int = 16,
        first_version: int = 0,
        refills: int = 2,
        prefix: str = "",
        ready: Callable[[], None] = lambda: None,
        completed: Callable[[CompleteGroup], None] = lambda _group: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._draw = draw
        self._pool = pool
        pool.on_drop = self._dropped
        self._admission = admission
        self._version = version
        self._first_version = first_version
        self._group_size = group_size
        self._prefix = prefix
        self._ready = ready
        self._completed = completed
        self._now = now
        self._slots = Slots(slots, verifications=verifications)
        self._places = Places(
            run=run,
            policy=policy,
            ledger=ledger,
            slots=self._slots,
            refills=refills,
            version=version,
            freed=self.wake,
            now=now,
        )
        self._flights: dict[str, Flight] = {}
        self._wake = asyncio.Event()
        self._fruitless = 0
        self._later: dict[str, dict[int, EndedMember]] = {}
        self._refilled: dict[str, int] = {}
        self._failure: BaseException | None = None
        self.completions = 0
        self.order = 0
        self.counts = DispatchCounts()

    @property
    def running(self) -> tuple[Draw, ...]:
        """Groups in flight, in the order of their dispatch."""
        return tuple(flight.draw for flight in self._flights.values())

    def wake(self) -> None:
        """Look again whether something may start: the version has changed, or a slot is free."""
        self._wake.set()

    async def serve(self) -> None:
        """Dispatch until cancelled; an error of this program or a run without any signal ends it and the pool."""
        try:
            await self._serve()
        except BaseException as error:
            self._pool.fail(error)
            raise

    def restore(self, state: LoopState, recovered: Recovered) -> None:
        """Go on where a checkpoint stood; of the groups in flight only the missing members run."""
        self.order = state.next_order
        self.completions = state.completions
        self.counts.accepted = state.accepted
        self.counts.rejected.update(state.rejected)
        self.counts.refills = state.refills
        self.counts.exhausted = state.exhausted
        self._later = dict(recovered.later)
        self._refilled = dict(recovered.refilled)
        self._pool.restore(recovered.pool)
        for draw, done in recovered.in_flight:
            self._launch(draw, done)
        self.counts.dispatched = state.next_order  # those in flight were counted when they were dispatched

    async def cancel_doomed(self, next_version: int) -> list[Draw]:
        """Cancel the groups that would be too old for ``next_version``, so that no pause waits for them."""
        victims = [
            flight
            for flight in self._flights.values()
            if flight.born is not None and doomed(flight.born, next_version=next_version, max_lag=self._pool.max_lag)
        ]
        await self._cancel(victims, "doomed")
        return [flight.draw for flight in victims]

    async def stop(self) -> None:
        """Cancel everything in flight and see it into the ledger."""
        await self._cancel(list(self._flights.values()), "shutdown")

    async def _serve(self) -> None:
        while self._failure is None:
            self._wake.clear()
            while self._failure is None and self._may_start():
                self._ready()
                self._start()
                await asyncio.sleep(0)  # its members queue for their slots before the next question
            await self._wake.wait()
        raise self._failure

    def _may_start(self) -> bool:
        published = self._version() - self._first_version
        accepted = self.counts.accepted
        admitted = self._admission.admits(running=len(self._flights), accepted=accepted, version=published)
        return admitted and self._slots.open

    def _start(self) -> None:
        task = self._draw()
        name = f"{self._prefix}g{self.order:06d}"
        draw = Draw(name, self.order, task, self._group_size, self._version(), self._now())
        self.order += 1
        ended = self._later.pop(draw.group_id, {})
        self._launch(draw, {i: m for i, m in ended.items() if m.record.task_digest == task.digests.task})

    def _launch(self, draw: Draw, done: dict[int, EndedMember]) -> None:
        versions = [member.record.weight_version_oldest for member in done.values()]
        born = min((version for version in versions if version is not None), default=None)
        flight = Flight(draw, born, self._refilled.pop(draw.group_id, 0))
        self._flights[draw.group_id] = flight
        self.counts.dispatched += 1
        flight.task = asyncio.create_task(self._fly(flight, done), name=draw.group_id)
        flight.task.add_done_callback(self._landed)

    async def _fly(self, flight: Flight, done: dict[int, EndedMember]) -> None:
        try:
            members = await self._places.fill(flight, done)
        finally:
            del self._flights[flight.draw.group_id]
            self.counts.refills += flight.refilled
            self.counts.exhausted += flight.exhausted
        complete = CompleteGroup(flight.draw, members, self._now(), self.completions, flight.refilled)
        self.completions += 1
        self._completed(complete)
        self._judge(complete)

    def _landed(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failure = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        self._wake.set()

    def _judge(self, complete: CompleteGroup) -> None:
        why = complete.no_signal
        if why is None:
            self._fruitless = 0
            self.counts.accepted += 1
            self._pool.put(complete)
            return
        self.counts.rejected[why] += 1
        self._fruitless += 1
        limit = _GIVE_UP_BATCHES * self._admission.groups_per_batch
        if self._fruitless >= limit:
            raise FaultyError(
                f"{limit} groups in a row carried no signal ({dict(self.counts.rejected)})",
                code="no_signal",
                hint="train on tasks whose pass rate for this model is between 0 and 1",
            )

    def _dropped(self, _group: CompleteGroup, why: str) -> None:
        self.counts.accepted -= 1
        self.counts.rejected[why] += 1
        self._wake.set()

    async def _cancel(self, flights: list[Flight], why: str) -> None:
        for flight in flights:
            flight.why = why
            if flight.task is not None:
                flight.task.cancel()
        await asyncio.gather(*(flight.task for flight in flights if flight.task), return_exceptions=True)
        self.counts.rejected.update([why] * len(flights))

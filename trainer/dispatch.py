"""Dispatch: which group starts when, which member is tried again, which group is given up.

    draw a task -> admitted? -> G members, each: slot -> episode -> ledger -> again? -> all ended -> pool

A group starts when a slot is free, no started member waits for one, and the admission rule agrees. A member that ended
for reasons of the machinery is tried again at its own place, a bounded number of times; then the group completes with
what it has. Groups that carry no signal are rejected and groups that cannot become young enough are cancelled before a
pause: both leave the accepted count, so their place is filled again, and both are counted. One event loop owns a
    dispatcher.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from envsdk.episode.record import EpisodeRecord
from envsdk.errors import FaultyError
from envsdk.spec.model import Task
from trainer.admission import Admission
from trainer.endings import cancelled, crashed, given_up
from trainer.group import CompleteGroup, Draw, EndedMember, Member
from trainer.ledger import Ledger
from trainer.pool import Pool
from trainer.pool_policy import doomed
from trainer.recovery import LoopState, Recovered

RunMember = Callable[[Member], Awaitable[EpisodeRecord]]
_GIVE_UP_BATCHES = 10
_HANG_FACTOR = 2.0
_HANG_GRACE_S = 60.0


@dataclass(slots=True)
class _Running:
    """A group in flight.

    ``born``: lowest weight version under which a member started, `None` before the first. ``why``: it was given up.
    """

    draw: Draw
    born: int | None = None
    refilled: int = 0
    why: str = ""
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class DispatchCounts:
    """What became of the groups so far."""

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
        version: the committed weight version.
        slots: episodes that may run at once.
        refills: how often one place of a group may be tried again.
        ready: raises where no episode can run any more; asked before a group starts.
        completed: hears of every complete group, whether it will be trained or not.
        close: hears of every group that will not be trained, with the reason.
    """

    def __init__(
        self,
        *,
        draw: Callable[[], Task],
        run: RunMember,
        pool: Pool,
        ledger: Ledger,
        admission: Admission,
        version: Callable[[], int],
        group_size: int,
        slots: int,
        refills: int = 2,
        ready: Callable[[], None] = lambda: None,
        completed: Callable[[CompleteGroup], None] = lambda _group: None,
        close: Callable[[Draw, str], None] = lambda _draw, _why: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._draw = draw
        self._run = run
        self._pool = pool
        pool.on_drop = self._dropped
        self._ledger = ledger
        self._admission = admission
        self._version = version
        self._group_size = group_size
        self._slots = asyncio.Semaphore(slots)
        self._waiting = 0
        self._refills = refills
        self._ready = ready
        self._completed = completed
        self._close = close
        self._now = now
        self._running: dict[str, _Running] = {}
        self._wake = asyncio.Event()
        self._completions = 0
        self._fruitless = 0
        self._later: dict[str, dict[int, EndedMember]] = {}
        self._failure: BaseException | None = None
        self.order = 0
        self.counts = DispatchCounts()

    @property
    def running(self) -> tuple[Draw, ...]:
        """Groups in flight, in the order of their dispatch."""
        return tuple(group.draw for group in self._running.values())

    def wake(self) -> None:
        """Look again whether something may start: the version has changed, or a limit."""
        self._wake.set()

    async def serve(self) -> None:
        """Dispatch until cancelled; an error of this program or a run without any signal ends it and the pool."""
        try:
            await self._serve()
        except BaseException as error:
            self._pool.fail(error)
            raise

    async def _serve(self) -> None:
        while self._failure is None:
            self._wake.clear()
            while self._failure is None and self._may_start():
                self._ready()
                self._start()
                await asyncio.sleep(0)  # its members queue for their slots before the next question
            await self._wake.wait()
        raise self._failure

    def restore(self, state: LoopState, recovered: Recovered) -> None:
        """Go on where a checkpoint stood; of the groups in flight only the missing members run."""
        self.order = state.next_order
        self.counts.accepted = state.accepted
        self.counts.rejected.update(state.rejected)
        self._completions = state.completions
        self._later = dict(recovered.later)
        self._pool.restore(recovered.pool)
        for draw, done in recovered.in_flight:
            self._launch(draw, done)

    @property
    def completions(self) -> int:
        """How many groups have completed."""
        return self._completions

    async def cancel_doomed(self, next_version: int) -> list[Draw]:
        """Cancel the groups that would be too old for ``next_version``, so that no pause waits for them."""
        victims = [
            group
            for group in self._running.values()
            if group.born is not None and doomed(group.born, next_version=next_version, max_lag=self._pool.max_lag)
        ]
        await self._cancel(victims, "doomed")
        return [group.draw for group in victims]

    async def stop(self) -> None:
        """Cancel everything in flight and see it into the ledger."""
        await self._cancel(list(self._running.values()), "shutdown")

    def _may_start(self) -> bool:
        running = len(self._running)
        admitted = self._admission.admits(running=running, accepted=self.counts.accepted, version=self._version())
        return admitted and not self._waiting and not self._slots.locked()

    def _start(self) -> None:
        task = self._draw()
        draw = Draw(f"g{self.order:06d}", self.order, task, self._group_size, self._version(), self._now())
        self.order += 1
        ended = self._later.pop(draw.group_id, {})
        self._launch(draw, {i: m for i, m in ended.items() if m.record.task_digest == task.digests.task})

    def _launch(self, draw: Draw, done: dict[int, EndedMember]) -> None:
        group = _Running(draw)
        self._running[draw.group_id] = group
        self.counts.dispatched += 1
        group.task = asyncio.create_task(self._run_group(group, done), name=draw.group_id)
        group.task.add_done_callback(self._group_done)

    def _dropped(self, group: CompleteGroup, why: str) -> None:
        self.counts.accepted -= 1
        self.counts.rejected[why] += 1
        self._close(group.draw, why)
        self._wake.set()

    def _group_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failure = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        self._wake.set()

    async def _run_group(self, group: _Running, done: dict[int, EndedMember]) -> None:
        draw = group.draw
        missing = [index for index in range(draw.size) if index not in done]
        try:
            async with asyncio.TaskGroup() as tasks:
                ended = {index: tasks.create_task(self._run_place(group, index)) for index in missing}
        finally:
            del self._running[draw.group_id]
        members = {**done, **{index: task.result() for index, task in ended.items()}}
        complete = CompleteGroup(
            draw=draw,
            members=tuple(members[index] for index in range(draw.size)),
            completed_at=self._now(),
            completion_order=self._completions,
            refilled=group.refilled,
        )
        self._completions += 1
        self._accept(complete)

    def _accept(self, complete: CompleteGroup) -> None:
        self._completed(complete)
        why = complete.no_signal
        if why is None:
            self._fruitless = 0
            self.counts.accepted += 1
            self._pool.put(complete)
            return
        self.counts.rejected[why] += 1
        self._close(complete.draw, why)
        self._fruitless += 1
        limit = _GIVE_UP_BATCHES * self._admission.groups_per_batch
        if self._fruitless >= limit:
            raise FaultyError(
                f"{limit} groups in a row carried no signal ({dict(self.counts.rejected)})",
                code="no_signal",
                hint="train on tasks whose pass rate for this model is between 0 and 1",
            )

    async def _run_place(self, group: _Running, index: int) -> EndedMember:
        """Episodes at one place of a group until one counts or the refills are used up."""
        attempt = self._first_attempt(group.draw, index)
        last = attempt + self._refills
        while True:
            ended = await self._run_member(group, Member(group.draw, index, attempt))
            if not ended.record.outcome.redispatch:
                return ended
            if attempt >= last:
                self.counts.exhausted += 1
                return ended
            attempt += 1
            group.refilled += 1
            self.counts.refills += 1

    def _first_attempt(self, draw: Draw, index: int) -> int:
        return next(n for n in itertools.count() if not self._ledger.knows(Member(draw, index, n).episode_id))

    async def _run_member(self, group: _Running, member: Member) -> EndedMember:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        started_at = self._now()
        try:
            version = self._version()
            group.born = version if group.born is None else min(group.born, version)
            self._ledger.start(
                member.episode_id,
                group_id=group.draw.group_id,
                index=member.index,
                attempt=member.attempt,
                order=group.draw.order,
                size=group.draw.size,
                version=group.draw.version,
                slug=group.draw.task.slug,
                family=group.draw.task.spec.family,
                task_digest=group.draw.task.digests.task,
                verifier_digest=group.draw.task.digests.verifier,
            )
            record = await self._episode(member)
            if group.why:  # given up meanwhile; an episode that is cancelled ends as a record, not as an exception
                self._ledger.end(given_up(record))
                raise asyncio.CancelledError
            self._ledger.end(record)
            return EndedMember(record, started_at, self._now())
        finally:
            self._slots.release()
            self._wake.set()

    async def _episode(self, member: Member) -> EpisodeRecord:
        limit_s = _HANG_FACTOR * member.draw.task.spec.budget.total_s + _HANG_GRACE_S
        try:
            async with asyncio.timeout(limit_s):
                return await self._run(member)
        except asyncio.CancelledError:
            self._ledger.end(cancelled(member))
            raise
        except Exception as error:  # noqa: BLE001 - law 2: whatever breaks around an episode, it ends in the ledger
            return crashed(member, error)

    async def _cancel(self, groups: list[_Running], why: str) -> None:
        for group in groups:
            group.why = why
            if group.task is not None:
                group.task.cancel()
        await asyncio.gather(*(group.task for group in groups if group.task), return_exceptions=True)
        for group in groups:
            self.counts.rejected[why] += 1
            self._close(group.draw, why)

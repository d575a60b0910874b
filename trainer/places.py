"""The members of a group in flight: each place runs episodes until one counts, or its refills are used up.

    place -> slot -> ledger: start -> episode -> ledger: end -> again, if the machinery failed and a refill is left
                                      (acts in its slot, is verified without it: `trainer.slots`)

Every episode that was started ends in the ledger exactly once, whatever breaks around it or gives its group up (law 2).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from envsdk.episode.record import EpisodeRecord, PolicyId
from trainer.endings import cancelled, crashed, given_up
from trainer.group import Draw, EndedMember, Member
from trainer.ledger import Ledger
from trainer.slots import Seat, Slots

RunMember = Callable[[Member, AbstractAsyncContextManager[object]], Awaitable[EpisodeRecord]]
"""Runs an episode, start to end; what it is given beside the member is held while its end is verified."""
_HANG_FACTOR = 2.0
_HANG_GRACE_S = 60.0


@dataclass(slots=True)
class Flight:
    """A group in flight.

    ``born``: lowest weight version under which a member started that counts, `None` before the first. ``refilled``:
    attempts that were made again. ``why``: the group was given up.
    """

    draw: Draw
    born: int | None = None
    refilled: int = 0
    exhausted: int = 0
    why: str = ""
    task: asyncio.Task[None] | None = None


class Places:
    """Runs the places of groups.

    Args:
        run: one episode, start to end; its failures are records, not exceptions.
        policy: whose episodes they are, also those that end before anybody acted.
        slots: shared by all groups.
        refills: how often one place may be tried again.
        version: the committed weight version.
        freed: told whenever a slot was given back.
    """

    def __init__(
        self,
        *,
        run: RunMember,
        policy: PolicyId,
        ledger: Ledger,
        slots: Slots,
        refills: int,
        version: Callable[[], int],
        freed: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        self._run = run
        self._policy = policy
        self._ledger = ledger
        self._slots = slots
        self._refills = refills
        self._version = version
        self._freed = freed
        self._now = now

    async def fill(self, flight: Flight, done: dict[int, EndedMember]) -> tuple[EndedMember, ...]:
        """Run every place that is not ``done``; returns one ended member for each, in their order.

        Raises:
            asyncio.CancelledError: the group was given up; its episodes have ended.
            ExceptionGroup: of this program's own errors, a ledger that cannot be written among them.
        """
        size = flight.draw.size
        async with asyncio.TaskGroup() as tasks:
            ended = {i: tasks.create_task(self._place(flight, i)) for i in range(size) if i not in done}
        members = {**done, **{index: task.result() for index, task in ended.items()}}
        return tuple(members[index] for index in range(size))

    async def _place(self, flight: Flight, index: int) -> EndedMember:
        attempt = self._first_attempt(flight.draw, index)
        last = attempt + self._refills
        while True:
            ended = await self._member(flight, Member(flight.draw, index, attempt))
            if not ended.record.outcome.redispatch:
                return ended
            if attempt >= last:
                flight.exhausted += 1
                return ended
            attempt += 1
            flight.refilled += 1

    def _first_attempt(self, draw: Draw, index: int) -> int:
        """Above 0 only in a resumed run, where the killed one has used some ids."""
        return next(n for n in itertools.count() if not self._ledger.knows(Member(draw, index, n).episode_id))

    async def _member(self, flight: Flight, member: Member) -> EndedMember:
        seat = Seat(self._slots, freed=self._freed)
        await seat.take()
        started_at = self._now()
        try:
            version = self._version()
            flight.born = version if flight.born is None else min(flight.born, version)
            self._ledger.start(member.episode_id, **_start_row(member))
            record = await self._episode(member, seat)
            if flight.why:  # given up meanwhile; an episode that is cancelled ends as a record, not as an exception
                self._ledger.end(given_up(record))
                raise asyncio.CancelledError
            self._ledger.end(record)
            return EndedMember(record, started_at, self._now())
        finally:
            seat.leave()

    async def _episode(self, member: Member, seat: Seat) -> EpisodeRecord:
        limit_s = _HANG_FACTOR * member.draw.task.spec.budget.total_s + _HANG_GRACE_S
        try:
            async with asyncio.timeout(limit_s) as seat.limit:
                return await self._run(member, seat)
        except asyncio.CancelledError:
            self._ledger.end(cancelled(member, policy=self._policy))
            raise
        except Exception as error:  # noqa: BLE001 - law 2: whatever breaks around an episode, it ends in the ledger
            return crashed(member, error, policy=self._policy)


def _start_row(member: Member) -> dict[str, object]:
    draw = member.draw
    return {
        "group_id": draw.group_id,
        "index": member.index,
        "attempt": member.attempt,
        "order": draw.order,
        "size": draw.size,
        "version": draw.version,
        "slug": draw.task.slug,
        "family": draw.task.spec.family,
        "task_digest": draw.task.digests.task,
        "verifier_digest": draw.task.digests.verifier,
    }

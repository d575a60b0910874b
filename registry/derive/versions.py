"""Weight versions of all runs of a lineage on one count of updates, so that evidence fades by whichever run goes on.

A run counts its versions from where its model began. So two runs of one model both pass version 1, and those of the
second, taken as they are, would all be late until they pass the first one's last: nothing would fade meanwhile. Hence
they are shifted: the first outcome that a run sends of a lineage counts as of the newest update that the lineage has
seen, unless its version is newer still. Runs that go on from each other's models keep their numbers.

Runs side by side share the count: the one that is ahead makes older evidence fade, and what the other one sends counts
as late, which it is in updates.

Derived, from outcomes in their order: folding them in batches or all again gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from registry.bulk import insert_rows, update_rows
from registry.db import Lineage, Outcome, Run, VersionCount

Stream = tuple[int, int]
"""(lineage id, run id), 0 for no run."""
_MOST = 2**31 - 1
"""What the columns hold: a run may have told of any version."""


class VersionCounts:
    """The counts as a transaction finds them, each read when it is first asked for; `write` stores what changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._shifts: dict[Stream, int] = {}
        self._newest: dict[Stream, int] = {}
        self._stored: dict[Stream, int] = {}
        self._reached: dict[int, int | None] = {}

    def counted(self, lineage: int | None, run: int | None, version: int) -> int:
        """The number of ``version`` on the lineage's count; to be asked of each outcome in its order."""
        if lineage is None:
            return version
        stream = (lineage, run or 0)
        if stream not in self._shifts:
            self._meet(stream, version)
        count = min(version + self._shifts[stream], _MOST)
        if count > self._newest[stream]:
            self._newest[stream] = count
            reached = self._reached[lineage]
            self._reached[lineage] = count if reached is None else max(count, reached)
        return count

    def write(self) -> None:
        """Store what is new, in the session's transaction."""
        fresh, grown = [], []
        for stream, newest in self._newest.items():
            row = {"lineage_id": stream[0], "run_id": stream[1], "newest": newest}
            if stream not in self._stored:
                fresh.append(row | {"shift": self._shifts[stream]})
            elif self._stored[stream] != newest:
                grown.append(row)
        insert_rows(self._session, VersionCount.__table__, fresh)
        update_rows(self._session, VersionCount.__table__, grown, where=("lineage_id", "run_id"))
        self._stored = dict(self._newest)

    def _meet(self, stream: Stream, version: int) -> None:
        lineage, run = stream
        if lineage not in self._reached:
            newest = select(func.max(VersionCount.newest)).where(VersionCount.lineage_id == lineage)
            self._reached[lineage] = self._session.scalar(newest)
        kept = self._session.get(VersionCount, stream)
        if kept is not None:
            self._shifts[stream] = kept.shift
            self._newest[stream] = self._stored[stream] = kept.newest
            return
        reached = self._reached[lineage]
        # What names no run may be of several: its versions are taken as they are told.
        shift = max(0, reached - version) if run and reached is not None else 0
        self._shifts[stream], self._newest[stream] = shift, version + shift
        self._reached[lineage] = version + shift if reached is None else max(version + shift, reached)


def forget(session: Session) -> None:
    """Delete all counts, before they are derived again."""
    session.execute(delete(VersionCount))


def stale_counts(session: Session) -> Iterator[tuple[str, str]]:
    """(lineage, run) of every count that does not end where its outcomes do. Reads every outcome."""
    run = func.coalesce(Outcome.run_id, 0)
    ends = {
        (int(lineage or 0), number): newest
        for lineage, number, newest in session.execute(
            select(Outcome.lineage_id, run, func.max(Outcome.weight_version))
            .where(Outcome.lineage_id.is_not(None))
            .group_by(Outcome.lineage_id, run)
        )
    }
    kept = {(row.lineage_id, row.run_id): row.newest - row.shift for row in session.scalars(select(VersionCount))}
    for stream in sorted(ends.keys() | kept.keys()):
        if ends.get(stream) != kept.get(stream):
            name = session.scalar(select(Lineage.name).where(Lineage.id == stream[0]))
            yield str(name), session.scalar(select(Run.name).where(Run.id == stream[1])) or "none"

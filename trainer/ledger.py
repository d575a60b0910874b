"""The ledger: every dispatched episode and how it ended, exactly once; ends are on the disk before anybody acts.

Two files, only ever appended to: ``dispatched.jsonl`` (one row a start) and ``episodes.jsonl`` (one `EpisodeRecord` a
row). After a kill the difference of the two is what was in flight; `close_abandoned` ends those as cancelled, so that
the sums of starts and ends agree whatever happened. An end without a start, or a second end, is an error in this
program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envsdk.episode.record import EpisodeRecord
from envsdk.errors import StoreError
from envsdk.files.jsonl import append_row, iter_rows

STARTS, ENDS = "dispatched.jsonl", "episodes.jsonl"
_OURS = "a fault of the scheduler, or two processes on one run: keep the run's directory and report it"


def stored_records(path: Path) -> Iterator[EpisodeRecord]:
    """The episodes in a file of ended ones.

    Raises:
        StoreError: ``corrupt_row``: a row is no episode.
    """
    for number, row in enumerate(iter_rows(path), start=1):
        try:
            yield EpisodeRecord.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            raise _no_row_of_ours(path, f"row {number}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _no_row_of_ours(path: Path, why: object) -> StoreError:
    return StoreError(
        f"a row is no episode's: {why}", code="corrupt_row", where=str(path), hint="put the file back as it was written"
    )


class Ledger:
    """The ledger of one run directory; reads what is there. One process writes it.

    Args:
        folder: the run's.
        on_end: hears every record once it is on the disk.
    """

    def __init__(self, folder: Path, *, on_end: Callable[[EpisodeRecord], None] = lambda _: None) -> None:
        self._starts = folder / STARTS
        self._ends = folder / ENDS
        self._on_end = on_end
        self._open: dict[str, dict[str, Any]] = {}
        self._ended: set[str] = set()
        self.outcomes: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self._read()

    @property
    def open(self) -> dict[str, dict[str, Any]]:
        """Rows of the episodes that have started and not ended, by id."""
        return dict(self._open)

    @property
    def ended(self) -> int:
        """How many have ended; also the number of rows, so a checkpoint's offset."""
        return len(self._ended)

    def knows(self, episode_id: str) -> bool:
        """Was this id ever dispatched?"""
        return episode_id in self._open or episode_id in self._ended

    def start(self, episode_id: str, **row: Any) -> None:
        """An episode is about to be given out.

        Raises:
            StoreError: ``started_twice``.
        """
        if self.knows(episode_id):
            raise StoreError("the episode was dispatched before", code="started_twice", where=episode_id, hint=_OURS)
        # Not forced to the disk: what the system has outlives this process, and only ends are acknowledged.
        append_row(self._starts, {"episode_id": episode_id, **row}, fsync=False)
        self._open[episode_id] = {"episode_id": episode_id, **row}

    def end(self, record: EpisodeRecord) -> None:
        """An episode has ended.

        Raises:
            StoreError: ``not_started`` or ``ended_twice``.
        """
        if record.episode_id not in self._open:
            code = "ended_twice" if record.episode_id in self._ended else "not_started"
            raise StoreError("an end without an open start", code=code, where=record.episode_id, hint=_OURS)
        append_row(self._ends, record.model_dump(mode="json"))
        self._close(record.episode_id, record.outcome.outcome_class, record.outcome.cause)
        self._on_end(record)

    def close_abandoned(self, close: Callable[[dict[str, Any]], EpisodeRecord]) -> list[EpisodeRecord]:
        """End what a killed run left open; ``close`` makes the record from the start's row."""
        records = [close(row) for row in self._open.values()]
        for record in records:
            self.end(record)
        return records

    def records(self) -> Iterator[EpisodeRecord]:
        """The ended episodes in the order of their ends."""
        if self._ends.exists():
            yield from stored_records(self._ends)

    def _read(self) -> None:
        path = self._starts
        try:
            if self._starts.exists():
                self._open = {row["episode_id"]: row for row in iter_rows(self._starts)}
            path = self._ends
            if self._ends.exists():
                for row in iter_rows(self._ends):
                    self._close(row["episode_id"], row["outcome"]["outcome_class"], row["outcome"]["cause"])
        except (KeyError, TypeError) as error:
            raise _no_row_of_ours(path, error) from error

    def _close(self, episode_id: str, outcome_class: str, cause: str) -> None:
        self._open.pop(episode_id, None)
        self._ended.add(episode_id)
        self.outcomes[outcome_class] += 1
        self.causes[cause] += 1

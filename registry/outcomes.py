"""Append ended episodes to the registry, each exactly once, and fold them into estimates and states.

A batch is one transaction: it is acknowledged when it is durable, and a batch that was cut off left nothing. Sending
the same episodes again counts them as duplicates. What cannot be counted is rejected with a code
(`registry.acceptance`), and the rest goes in.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import rfc8785
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from envsdk.digest import sha256_hex
from envsdk.episode.record import EpisodeRecord, PolicyId
from envsdk.errors import UsageError
from registry.acceptance import Rejected, fault_of, misfit_of, read_line
from registry.bulk import insert_rows, is_one_of
from registry.db import Episode, Item, Outcome, Policy, Run
from registry.db.engine import Database
from registry.derive.events import OutcomeEvent
from registry.derive.fold import chunks, fold
from registry.derive.lineages import ensure_lineage, lineage_name
from registry.derive.tallies import count_in

_T = TypeVar("_T")
BATCH = 5_000
"""Episodes a transaction: an item's estimate is read and written once in each, however many of them are its own."""
RUN_NAME = 128
"""Characters of a run's name."""
_WORTH_COMPRESSING = 4_096
GRADED_CLASSES = ("model_success", "model_failure")


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What became of the records of one call. Their numbers add up to what was sent."""

    accepted: int = 0
    duplicate: int = 0
    rejected: tuple[Rejected, ...] = ()

    def __add__(self, other: AppendResult) -> AppendResult:
        return AppendResult(
            self.accepted + other.accepted, self.duplicate + other.duplicate, self.rejected + other.rejected
        )


@dataclass(slots=True)
class Names:
    """Ids of the items, policies and runs met so far, looked up once a call."""

    items: dict[tuple[str, str], int] = field(default_factory=dict)
    policies: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    last_policy: tuple[PolicyId, tuple[int, int | None]] | None = None


def append_records(database: Database, records: Iterable[EpisodeRecord], *, run: str = "") -> AppendResult:
    """Append ended episodes.

    Args:
        database: an open registry.
        records: in the order they ended, which is the order they are folded in.
        run: name of the run that they belong to, if any.

    Raises:
        UsageError: ``run`` is no name (``bad_name``).
        StoreError: the database failed; batches before the failing one are in, and sending all again is safe.
    """
    if len(run) > RUN_NAME or "\0" in run:
        raise UsageError(f"a run's name has at most {RUN_NAME} characters, and no NUL", code="bad_name")
    result = AppendResult()
    names = Names()
    for batch in _batches(records):
        with database.writing() as session:
            result += _append_batch(session, batch, names=names, run=run)
    return result


def append_lines(
    database: Database,
    lines: Iterable[bytes | str],
    *,
    run: str = "",
    first: int = 1,
    progress: Callable[[AppendResult], None] = lambda _: None,
) -> AppendResult:
    """Append a ledger's JSON lines.

    A line that is no record is rejected as ``invalid_record``, or ``not_a_number``; ``first`` is the number of the
    first line, and ``progress`` hears the result so far.
    """
    result = AppendResult()
    for numbered in _batches(enumerate(lines, start=first)):
        records: list[EpisodeRecord] = []
        rejected: list[Rejected] = []
        for number, line in numbered:
            if not line.strip():
                continue
            parsed = read_line(line, which=f"line {number}")
            (records if isinstance(parsed, EpisodeRecord) else rejected).append(parsed)  # type: ignore[arg-type]
        result += append_records(database, records, run=run) + AppendResult(rejected=tuple(rejected))
        progress(result)
    return result


def _batches(things: Iterable[_T]) -> Iterator[list[_T]]:
    batch: list[_T] = []
    for thing in things:
        batch.append(thing)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _append_batch(session: Session, records: Sequence[EpisodeRecord], *, names: Names, run: str) -> AppendResult:
    fitting: list[EpisodeRecord] = []
    rejected: list[Rejected] = []
    for record in records:
        misfit = misfit_of(record)
        if misfit is None:
            fitting.append(record)
        else:
            rejected.append(misfit)
    fresh, duplicate = _without_known(session, fitting)
    _learn_items(session, fresh, names)
    rows: list[dict[str, Any]] = []
    events: list[OutcomeEvent] = []
    episodes: list[dict[str, Any]] = []
    run_id = _run_id(session, run) if run and fresh else None
    position = session.scalar(select(func.max(Outcome.id))) or 0
    for record in fresh:
        fault = fault_of(record, names.items)
        if fault is not None:
            rejected.append(fault)
            continue
        position += 1
        row = _row(record, names, session, position=position, run_id=run_id)
        rows.append(row)
        events.append(event_of(row, agent=record.policy.model))
        episodes.append({"episode_id": record.episode_id, "record": packed(record)})
    insert_rows(session, Outcome.__table__, rows)
    insert_rows(session, Episode.__table__, episodes)
    count_in(session, rows)
    fold(session, events)
    return AppendResult(len(rows), duplicate, tuple(rejected))


def packed(record: EpisodeRecord) -> bytes:
    """The whole record as stored: JSON, zlib-compressed where that is worth the time."""
    plain = record.model_dump_json().encode()
    return plain if len(plain) < _WORTH_COMPRESSING else zlib.compress(plain, 1)


def unpacked(stored: bytes) -> bytes:
    """The JSON of the record that `packed` stored."""
    return stored if stored.startswith(b"{") else zlib.decompress(stored)


def event_of(row: Mapping[str, Any], *, agent: str) -> OutcomeEvent:
    """The event that an outcome's row stands for; ``agent`` is the model's name, or ``oracle``."""
    return OutcomeEvent(
        item_id=row["item_id"],
        lineage_id=row["lineage_id"],
        position=row["id"],
        passed=row["passed"],
        cause=row["cause"],
        weight_version=row["weight_version"],
        agent=agent,
        at=row["started_at"],
    )


def _without_known(session: Session, records: Sequence[EpisodeRecord]) -> tuple[list[EpisodeRecord], int]:
    first = {record.episode_id: record for record in reversed(records)}
    known = known_ids(session, list(first))
    fresh = [record for record in records if record.episode_id not in known and first[record.episode_id] is record]
    return fresh, len(records) - len(fresh)


def known_ids(session: Session, episode_ids: Sequence[str]) -> set[str]:
    """Which of these episodes are here already."""
    known: set[str] = set()
    for some in chunks(episode_ids):
        known.update(session.scalars(select(Outcome.episode_id).where(is_one_of(session, Outcome.episode_id, some))))
    return known


def _learn_items(session: Session, records: Sequence[EpisodeRecord], names: Names) -> None:
    missing = sorted({record.task_digest for record in records} - {task for task, _ in names.items})
    for some in chunks(missing):
        for row in session.execute(
            select(Item.id, Item.task_digest, Item.verifier_digest).where(is_one_of(session, Item.task_digest, some))
        ):
            names.items[row.task_digest, row.verifier_digest] = row.id


def _row(record: EpisodeRecord, names: Names, session: Session, *, position: int, run_id: int | None) -> dict[str, Any]:
    policy_id, lineage_id = _policy(session, record.policy, names)
    outcome = record.outcome
    graded = outcome.graded and outcome.outcome_class in GRADED_CLASSES
    return {
        "id": position,
        "run_id": run_id,
        "episode_id": record.episode_id,
        "item_id": names.items[record.task_digest, record.verifier_digest],
        "policy_id": policy_id,
        "lineage_id": lineage_id,
        "weight_version": record.weight_version_oldest or 0,
        "outcome_class": outcome.outcome_class,
        "cause": outcome.cause,
        "passed": outcome.outcome_class == "model_success" if graded else None,
        "reward": outcome.reward,
        "group_id": record.group_id,
        "seconds": record.times.total_s,
        "tokens": sum(turn.generated_tokens for turn in record.turns) if record.turns else None,
        "started_at": record.started_at,
    }


def _policy(session: Session, policy: PolicyId, names: Names) -> tuple[int, int | None]:
    # A trainer's records share one policy object; writing it out for each costs more than the look-up.
    if names.last_policy is not None and names.last_policy[0] is policy:
        return names.last_policy[1]
    said = policy.model_dump_json()
    if said not in names.policies:
        identity = policy.model_dump(mode="json")
        key = sha256_hex(rfc8785.dumps(identity))
        name = lineage_name(identity)
        lineage = None if name is None else ensure_lineage(session, name)
        found = session.scalar(select(Policy.id).where(Policy.key == key))
        if found is None:
            row = Policy(key=key, lineage_id=lineage, model=policy.model, identity=identity)
            session.add(row)
            session.flush()
            found = row.id
        names.policies[said] = (found, lineage)
    names.last_policy = (policy, names.policies[said])
    return names.policies[said]


def _run_id(session: Session, name: str) -> int:
    found = session.scalar(select(Run.id).where(Run.name == name))
    if found is not None:
        return found
    row = Run(name=name, created_at=time.time())
    session.add(row)
    session.flush()
    return row.id

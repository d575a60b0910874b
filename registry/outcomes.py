"""Append ended episodes to the registry, each exactly once, and fold them into estimates and states.

A batch is one transaction: it is acknowledged when it is durable, and a batch that was cut off left nothing. Sending
the same episodes again counts them as duplicates. What cannot be counted is rejected with a code
(`registry.acceptance`), and the rest goes in.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import rfc8785
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from envsdk.digest import sha256_hex
from envsdk.episode.record import EpisodeRecord, PolicyId
from envsdk.errors import UsageError
from registry.acceptance import Rejected, fault_of, tokens_of, unknown_digest
from registry.bulk import insert_values, is_one_of
from registry.db import Episode, Item, Outcome, OutcomeRow, Policy, Run
from registry.db.engine import Database
from registry.derive.events import OutcomeEvent
from registry.derive.fold import chunks, fold
from registry.derive.lineages import ensure_lineage, lineage_name
from registry.derive.tallies import count_in
from registry.derive.versions import VersionCounts
from registry.ledger_line import read_line

BATCH = 20_000
"""Episodes a transaction: an item's estimate is read and written once in each, however many of them are its own."""
BATCH_BYTES = 64 << 20
"""Stored records a transaction, before the episode that reaches it."""
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
    policies: dict[bytes, tuple[int, int | None]] = field(default_factory=dict)


class _Ended(NamedTuple):
    """What is kept of a record until its batch is written: a fraction of the record itself."""

    episode_id: str
    pair: tuple[str, str]
    policy: PolicyId
    weight_version: int
    outcome_class: str
    cause: str
    passed: bool | None
    reward: float | None
    group_id: str
    seconds: float | None
    tokens: int | None
    started_at: float
    stored: bytes


class _Batch:
    """Records that will be one transaction, and what was rejected on the way."""

    def __init__(self) -> None:
        self.ended: list[_Ended] = []
        self.rejected: list[Rejected] = []
        self._bytes = 0
        self._policy: PolicyId | None = None

    @property
    def full(self) -> bool:
        return len(self.ended) >= BATCH or self._bytes >= BATCH_BYTES

    def add(self, record: EpisodeRecord, stored: bytes | None = None) -> None:
        """Take what the tables need of ``record``; ``stored``: its JSON, where it is at hand."""
        if (fault := fault_of(record)) is not None:
            self.rejected.append(fault)
            return
        if record.policy != self._policy:  # nearly always the one before: one object for all of them
            self._policy = record.policy
        outcome = record.outcome
        packed_record = packed(stored if stored is not None else record.model_dump_json().encode())
        self._bytes += len(packed_record)
        self.ended.append(
            _Ended(
                record.episode_id,
                (record.task_digest, record.verifier_digest),
                self._policy,
                record.weight_version_oldest or 0,
                outcome.outcome_class,
                outcome.cause,
                outcome.outcome_class == "model_success"
                if outcome.graded and outcome.outcome_class in GRADED_CLASSES
                else None,
                outcome.reward,
                record.group_id,
                record.times.total_s,
                tokens_of(record),
                record.started_at,
                packed_record,
            )
        )


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
    write = _writer(database, run)
    result, batch = AppendResult(), _Batch()
    for record in records:
        batch.add(record)
        if batch.full:
            result, batch = result + write(batch), _Batch()
    return result + write(batch)


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
    write = _writer(database, run)
    result, batch = AppendResult(), _Batch()
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        read = read_line(line, which=f"line {number}")
        if isinstance(read, Rejected):
            batch.rejected.append(read)
        else:
            batch.add(*read)
        if batch.full or len(batch.rejected) >= BATCH:
            result, batch = result + write(batch), _Batch()
            progress(result)
    if batch.ended or batch.rejected:
        result += write(batch)
        progress(result)
    return result


def _writer(database: Database, run: str) -> Callable[[_Batch], AppendResult]:
    if len(run) > RUN_NAME or "\0" in run:
        raise UsageError(f"a run's name has at most {RUN_NAME} characters, and no NUL", code="bad_name")
    names = Names()

    def write(batch: _Batch) -> AppendResult:
        if not batch.ended:
            return AppendResult(rejected=tuple(batch.rejected))
        with database.writing() as session:
            return _append_batch(session, batch, names=names, run=run)

    return write


def _append_batch(session: Session, batch: _Batch, *, names: Names, run: str) -> AppendResult:
    fresh = _without_known(session, batch.ended)
    _learn_items(session, fresh, names)
    rows: list[OutcomeRow] = []
    events: list[OutcomeEvent] = []
    episodes: list[tuple[str, bytes]] = []
    rejected = list(batch.rejected)
    run_id = _run_id(session, run) if run and fresh else None
    position = session.scalar(select(func.max(Outcome.id))) or 0
    versions = VersionCounts(session)
    policy: PolicyId | None = None
    policy_id, lineage_id = 0, None
    for ended in fresh:
        item_id = names.items.get(ended.pair)
        if item_id is None:
            rejected.append(unknown_digest(ended.episode_id, *ended.pair))
            continue
        if ended.policy is not policy:
            policy = ended.policy
            policy_id, lineage_id = _policy(session, policy, names)
        position += 1
        episode_id, _, _, version, outcome_class, cause, passed, reward, group_id, seconds, tokens, at, stored = ended
        rows.append(
            OutcomeRow(
                position,
                episode_id,
                item_id,
                policy_id,
                lineage_id,
                version,
                outcome_class,
                cause,
                passed,
                reward,
                group_id,
                seconds,
                tokens,
                at,
                run_id,
            )
        )
        count = versions.counted(lineage_id, run_id, version)
        events.append(OutcomeEvent(item_id, lineage_id, position, passed, cause, count, policy.model, at))
        episodes.append((episode_id, stored))
    insert_values(session, Outcome.__table__, OutcomeRow._fields, rows)
    insert_values(session, Episode.__table__, ("episode_id", "record"), episodes)
    count_in(session, rows)
    versions.write()
    fold(session, events)
    return AppendResult(len(rows), len(batch.ended) - len(fresh), tuple(rejected))


def packed(plain: bytes) -> bytes:
    """A record's JSON as stored: zlib-compressed where that is worth the time."""
    return plain if len(plain) < _WORTH_COMPRESSING else zlib.compress(plain, 1)


def unpacked(stored: bytes) -> bytes:
    """The JSON of the record that `packed` stored."""
    return stored if stored.startswith(b"{") else zlib.decompress(stored)


def _without_known(session: Session, ended: Sequence[_Ended]) -> list[_Ended]:
    first: dict[str, _Ended] = {}
    for one in ended:
        first.setdefault(one.episode_id, one)
    known = known_ids(session, list(first))
    return [one for episode_id, one in first.items() if episode_id not in known]


def known_ids(session: Session, episode_ids: Sequence[str]) -> set[str]:
    """Which of these episodes are here already."""
    known: set[str] = set()
    for some in chunks(episode_ids):
        known.update(session.scalars(select(Outcome.episode_id).where(is_one_of(session, Outcome.episode_id, some))))
    return known


def _learn_items(session: Session, ended: Sequence[_Ended], names: Names) -> None:
    missing = sorted({one.pair[0] for one in ended} - {task for task, _ in names.items})
    for some in chunks(missing):
        for row in session.execute(
            select(Item.id, Item.task_digest, Item.verifier_digest).where(is_one_of(session, Item.task_digest, some))
        ):
            names.items[row.task_digest, row.verifier_digest] = row.id


def _policy(session: Session, policy: PolicyId, names: Names) -> tuple[int, int | None]:
    """Ids of the policy and of its lineage, made where they are new."""
    said = msgspec.json.encode(policy) if isinstance(policy, msgspec.Struct) else policy.model_dump_json().encode()
    if said not in names.policies:
        identity = PolicyId.model_validate_json(said).model_dump(mode="json")
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
    return names.policies[said]


def _run_id(session: Session, name: str) -> int:
    found = session.scalar(select(Run.id).where(Run.name == name))
    if found is not None:
        return found
    row = Run(name=name, created_at=time.time())
    session.add(row)
    session.flush()
    return row.id

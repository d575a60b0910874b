"""Ingest of outcomes against the database's own bulk path.

The registry is filled with 2,000 tasks by `benchmarks.large_registry`. Ours and the floors take turns, so that what
else the machine does hits all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.large_registry import fill
from benchmarks.registry_statistics import Row
from envsdk.episode.record import EpisodeRecord, PhaseTimes, PolicyId, Turn
from registry.bulk import insert_values
from registry.db import Episode, OutcomeRow
from registry.db import Outcome as OutcomeTable
from registry.local import LocalRegistry
from registry.outcomes import BATCH, append_lines, known_ids
from tests.fakes.outcomes import finished

Clock = Callable[[], float]
_POLICY = PolicyId(model="small", lineage="small")
TASKS = 2_000


def _clock(registry: LocalRegistry) -> Clock:
    """An embedded database works in this process, so that its CPU time is the measure on a busy machine."""
    return time.process_time if registry.database.is_sqlite else time.perf_counter


def ingest(fresh: Callable[[str], LocalRegistry], label: str, outcomes: int = 100_000) -> Iterator[Row]:
    """Seconds to append a ledger to a registry of 2,000 tasks without outcomes, against the database's own bulk path.

    The floors insert the same rows into the same tables with the same indices, as many a transaction, and do nothing
    else: the outcomes' rows alone, and those with the episodes' records. All take turns.
    """
    with fresh("ours") as registry, fresh("rows") as rows_floor, fresh("records") as records_floor:
        for one in (registry, rows_floor, records_floor):
            fill(one, TASKS, outcomes=0)
        clock = _clock(registry)
        ours = of_rows = of_records = 0.0
        written = 0
        while written < outcomes:
            rows, lines = part(written, min(BATCH, outcomes - written))
            written += len(rows)
            stored = [(row.episode_id, line) for row, line in zip(rows, lines, strict=True)]
            began = clock()
            _insert(rows_floor, rows)
            between = clock()
            _insert(records_floor, rows, stored)
            after = clock()
            append_lines(registry.database, lines)
            of_rows, of_records, ours = of_rows + between - began, of_records + after - between, ours + clock() - after
        said = f"{ours:.2f} s against {of_rows:.2f} s: {ours / of_rows:.1f}x ({outcomes / ours:,.0f} outcomes/s)"
        yield Row(f"{label}: ingest of a ledger, all of it, against outcome rows", said, "<= 2x", ours <= 2 * of_rows)
        said = f"{ours:.2f} s against {of_records:.2f} s: {ours / of_records:.2f}x"
        yield Row(f"{label}: the same against outcome rows and records", said, "(none)", met=True)
        rows_s = _rows_only(rows_floor, outcomes)
        said = f"{rows_s:.2f} s against {of_rows:.2f} s: {rows_s / of_rows:.2f}x"
        yield Row(f"{label}: ingest of outcome rows, duplicates looked for", said, "<= 2x", rows_s <= 2 * of_rows)


def _insert(registry: LocalRegistry, rows: list[OutcomeRow], stored: list[tuple[str, bytes]] | None = None) -> None:
    with registry.database.writing() as session:
        insert_values(session, OutcomeTable.__table__, OutcomeRow._fields, rows)
        if stored is not None:
            insert_values(session, Episode.__table__, ("episode_id", "record"), stored)


def _rows_only(registry: LocalRegistry, outcomes: int) -> float:
    """Seconds for as many rows again under new ids, with the look for duplicates that `append_lines` makes."""
    clock = _clock(registry)
    spent = 0.0
    for start in range(0, outcomes, BATCH):
        rows, _ = part(outcomes + start, min(BATCH, outcomes - start))
        began = clock()
        with registry.database.writing() as session:
            known = known_ids(session, [row.episode_id for row in rows])
            kept = [row for row in rows if row.episode_id not in known]
            insert_values(session, OutcomeTable.__table__, OutcomeRow._fields, kept)
        spent += clock() - began
    return spent


def part(start: int, count: int) -> tuple[list[OutcomeRow], list[bytes]]:
    """Outcomes ``start + 1 ..`` as the rows and as the ledger's lines, 1.4 KB each, that they come from."""
    rng = np.random.default_rng(start)
    rows, lines = [], []
    for number in range(start + 1, start + count + 1):
        record = _record(number, rng)
        lines.append(record.model_dump_json().encode())
        rows.append(_row(number, record))
    return rows, lines


def _row(number: int, record: EpisodeRecord) -> OutcomeRow:
    return OutcomeRow(
        number,
        record.episode_id,
        int(record.task_digest, 16),
        1,
        1,
        0,
        record.outcome.outcome_class,
        record.outcome.cause,
        record.outcome.outcome_class == "model_success",
        record.outcome.reward,
        "",
        record.times.total_s,
        record.turns[0].generated_tokens,
        record.started_at,
        None,
    )


def _record(number: int, rng: np.random.Generator) -> EpisodeRecord:
    reward = float(rng.random() < 0.5)
    item = int(rng.integers(1, TASKS + 1))
    return EpisodeRecord(
        episode_id=rng.bytes(16).hex(),
        slug=f"task-{item}",
        task_digest=f"{item:064x}",
        verifier_digest="0" * 64,
        policy=_POLICY,
        weight_version_oldest=0,
        weight_version_newest=0,
        outcome=finished(reward),
        facts={"phase": "verify", "ended_by": "final_answer", "verifier": {"status": "scored", "reward": reward}},
        turns=(Turn(reply="I read the file. " * 9, observation="3 lines\n" * 4, finish="stop", generated_tokens=30),),
        times=PhaseTimes(queue_s=0.1, acquire_s=0.2, setup_s=0.1, decode_s=1.0, verify_s=0.4, total_s=2.0),
        stamps={"dispatched": 0.0, "acquired": 0.2, "first_token": 0.4, "verify_start": 1.2, "verified": 1.8},
        started_at=float(number),
    )

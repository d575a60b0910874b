"""Ingest of outcomes against the database's own bulk path.

The registry is filled with 2,000 tasks by `benchmarks.large_registry`. Ours and the floor take turns, so that what else
the machine does hits both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.large_registry import fill
from benchmarks.registry_statistics import Row
from envsdk.episode.record import EpisodeRecord, PolicyId
from registry.bulk import insert_rows
from registry.db import Outcome as OutcomeTable
from registry.local import LocalRegistry
from registry.outcomes import BATCH, known_ids
from tests.fakes.outcomes import finished

Clock = Callable[[], float]
_POLICY = PolicyId(model="small", lineage="small")
_TASKS = 2_000


def outcome_row(number: int, item: int, passed: bool) -> dict[str, Any]:
    """A row of the table ``outcome``."""
    return {
        "id": number,
        "episode_id": f"episode-{number}",
        "item_id": item,
        "policy_id": 1,
        "lineage_id": 1,
        "weight_version": 0,
        "outcome_class": "model_success" if passed else "model_failure",
        "cause": "finished",
        "passed": passed,
        "reward": float(passed),
        "group_id": "",
        "seconds": 1.0,
        "tokens": 10,
        "started_at": float(number),
        "run_id": None,
    }


def _clock(registry: LocalRegistry) -> Clock:
    """An embedded database works in this process, so that its CPU time is the measure on a busy machine."""
    return time.process_time if registry.database.is_sqlite else time.perf_counter


def ingest(registry: LocalRegistry, floor: LocalRegistry, label: str, outcomes: int = 20_000) -> Iterator[Row]:
    """Seconds to append outcomes to a registry of 2,000 tasks without outcomes, against the database's own bulk path.

    The floor inserts the same outcome rows into the same table with the same indices, as many a transaction, and
    does nothing else. Ours is split: the outcome rows (duplicates looked for), and all of it (records kept,
    estimates, states and audit brought up to date).
    """
    for one in (registry, floor):
        fill(one, _TASKS, outcomes=0)
    rng = np.random.default_rng(1)
    items, passes = rng.integers(1, _TASKS + 1, outcomes), rng.random(outcomes) < 0.5
    picks = [(int(item), bool(passed)) for item, passed in zip(items, passes, strict=True)]
    rows = [outcome_row(number, item, passed) for number, (item, passed) in enumerate(picks, start=1)]
    records = [_record(number, item, passed) for number, (item, passed) in enumerate(picks, start=1)]
    clock = _clock(registry)
    floor_s = ours_s = 0.0
    for start in range(0, outcomes, BATCH):
        began = clock()
        with floor.database.writing() as session:
            insert_rows(session, OutcomeTable.__table__, rows[start : start + BATCH])
        between = clock()
        registry.append(records[start : start + BATCH])
        floor_s, ours_s = floor_s + between - began, ours_s + clock() - between
    said = f"{ours_s:.2f} s against {floor_s:.2f} s: {ours_s / floor_s:.1f}x ({outcomes / ours_s:,.0f} outcomes/s)"
    yield Row(f"{label}: ingest with estimates, states, audit and records", said, "(no bar: more work)", met=True)
    rows_s = _rows_only(floor, rows, outcomes)
    said = f"{rows_s:.2f} s against {floor_s:.2f} s: {rows_s / floor_s:.2f}x"
    yield Row(f"{label}: ingest of outcome rows, duplicates looked for", said, "<= 2x", rows_s / floor_s <= 2)


def _rows_only(registry: LocalRegistry, rows: list[dict[str, Any]], outcomes: int) -> float:
    """Seconds for the same rows again under new ids, with the look for duplicates that `append` makes."""
    clock = _clock(registry)
    spent = 0.0
    for start in range(0, outcomes, BATCH):
        part = [
            row | {"id": row["id"] + outcomes, "episode_id": f"again-{row['id']}"}
            for row in rows[start : start + BATCH]
        ]
        began = clock()
        with registry.database.writing() as session:
            known = known_ids(session, [row["episode_id"] for row in part])
            insert_rows(session, OutcomeTable.__table__, [row for row in part if row["episode_id"] not in known])
        spent += clock() - began
    return spent


def _record(number: int, item: int, passed: bool) -> EpisodeRecord:
    return EpisodeRecord(
        episode_id=f"episode-{number}",
        slug=f"task-{item}",
        task_digest=f"{item:064x}",
        verifier_digest="0" * 64,
        policy=_POLICY,
        weight_version_oldest=0,
        outcome=finished(float(passed)),
        started_at=float(number),
    )

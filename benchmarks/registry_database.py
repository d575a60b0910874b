"""The registry's database: queries of a large registry against the best hand-written SQL, and bulk ingest.

The registry is filled straight into its tables with simulated standings (true pass rates Beta(0.35, 0.35)): pushing a
million directories would measure the disk. Ours and the floor take turns, so that what else the machine does hits
both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from benchmarks.registry_statistics import Row
from envsdk.digest import canonical, sha256_hex
from envsdk.episode.record import EpisodeRecord, Outcome, PolicyId
from registry.bulk import insert_rows
from registry.db import Item, ItemTag, Lineage, Standing, StandingTag, Tag
from registry.db import Outcome as OutcomeTable
from registry.db import Policy as PolicyTable
from registry.derive.lineages import FRESH
from registry.local import LocalRegistry
from registry.outcomes import BATCH, known_ids
from registry.query import parse
from registry.query.sql import compile_query

SHARES = {"common": 0.1, "some": 0.01, "rare": 0.001}
Clock = Callable[[], float]
_POLICY = PolicyId(model="small", lineage="small")
_CHUNK = 50_000
_QUERY = "status:learnable tag:{tag} p:0.2..0.8 sort:-learnability"


def fill(registry: LocalRegistry, tasks: int, outcomes: int) -> None:
    """Fill an empty registry with ``tasks`` items under one lineage and ``outcomes`` outcomes."""
    rng = np.random.default_rng(0)
    with registry.database.writing() as session:
        session.execute(insert(Lineage).values(id=1, name="small", is_reference=True, created_at=0.0))
        identity = _POLICY.model_dump(mode="json")
        session.add(
            PolicyTable(key=sha256_hex(canonical(identity)), lineage_id=1, model=_POLICY.model, identity=identity)
        )
        for number, (name, share) in enumerate(SHARES.items(), start=1):
            session.execute(insert(Tag).values(id=number, kind="tag", name=name, items=int(tasks * share)))
    for start in range(0, tasks, _CHUNK):
        with registry.database.writing() as session:
            _fill_items(session, rng, range(start, min(start + _CHUNK, tasks)))
    for start in range(0, outcomes, _CHUNK):
        with registry.database.writing() as session:
            insert_rows(session, OutcomeTable.__table__, _outcomes(rng, start, min(_CHUNK, outcomes - start), tasks))
    with registry.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def _fill_items(session: Session, rng: np.random.Generator, numbers: range) -> None:
    size = len(numbers)
    k = rng.binomial(8, rng.beta(0.35, 0.35, size))
    alpha, beta = 0.15 + k, 0.23 + 8 - k
    total = alpha + beta
    mean, learnability = alpha / total, alpha * beta / (total * (total + 1))
    status = np.where(k == 0, "too_hard", np.where(k == 8, "saturating", "learnable"))
    items, standings = [], []
    for place, number in enumerate(numbers):
        item = number + 1
        items.append(_item(item))
        values = FRESH | {
            "mean": float(mean[place]),
            "learnability": float(learnability[place]),
            "n": 8,
            "k": int(k[place]),
        }
        standings.append({"lineage_id": 1, "item_id": item, "status": str(status[place]), "updated_at": 0.0} | values)
    insert_rows(session, Item.__table__, items)
    insert_rows(session, Standing.__table__, standings)
    for tag, share in enumerate(SHARES.values(), start=1):
        chosen = np.flatnonzero(rng.random(size) < share)
        rows = [standings[place] for place in chosen]
        insert_rows(session, ItemTag.__table__, [{"item_id": row["item_id"], "tag_id": tag} for row in rows])
        index = ("lineage_id", "item_id", "status", "learnability", "mean")
        insert_rows(
            session, StandingTag.__table__, [{"tag_id": tag} | {name: row[name] for name in index} for row in rows]
        )


def _item(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "task_digest": f"{number:064x}",
        "verifier_digest": "0" * 64,
        "slug": f"task-{number}",
        "family": "",
        "tags": "[]",
        "spec": "{}",
        "search_text": f"task-{number}",
        "package": "0" * 64,
        "verified": "checked",
        "broken": False,
        "flaky": False,
        "ungraded_run": 0,
        "created_at": 0.0,
    }


def _outcomes(rng: np.random.Generator, start: int, size: int, tasks: int) -> list[dict[str, Any]]:
    items = rng.integers(1, tasks + 1, size)
    passed = rng.random(size) < 0.5
    return [outcome_row(start + place + 1, int(items[place]), bool(passed[place])) for place in range(size)]


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


def queries(registry: LocalRegistry, label: str, repeats: int = 200) -> Iterator[Row]:
    """Database time of the page's ids against hand-written SQL, and the whole call, for each tag."""
    for tag, share in SHARES.items():
        q = _QUERY.format(tag=tag)
        with registry.database.reading() as session:
            ours, floor = _statements(session, q, list(SHARES).index(tag) + 1)
            assert ours() == floor(), "both must find the same rows"
            ours_ms, floor_ms = _in_turns(ours, floor, repeats, _clock(registry))
        ratio = float(np.median(ours_ms) / np.median(floor_ms))
        said = f"{np.median(ours_ms):.3f} ms against {np.median(floor_ms):.3f} ms: {ratio:.2f}x"
        yield Row(f"{label}: query, tag on {100 * share:g} % of tasks, database time", said, "<= 1.3x", ratio <= 1.3)
        whole = _times(lambda q=q: registry.query(q), repeats, _clock(registry))
        p95 = float(np.percentile(whole, 95))
        said = f"p50 {np.median(whole):.2f} ms, p95 {p95:.2f} ms"
        yield Row(f"{label}: whole call, tag on {100 * share:g} %", said, "p95 <= 5 ms", p95 <= 5)


def _statements(session: Session, q: str, tag: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The compiled query and the hand-written one on the same driver cursor, values bound in both."""
    selection = compile_query(session, parse(q))
    connection = session.connection()
    driver: Any = connection.connection.driver_connection
    compiled = selection.page(50, None).compile(dialect=connection.dialect, compile_kwargs={"render_postcompile": True})
    values = compiled.params
    named = compiled.positiontup or list(values)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    hand = (
        "SELECT item_id, learnability FROM standing_tag WHERE lineage_id = ? AND tag_id = ? AND status = ? "
        "AND mean BETWEEN ? AND ? ORDER BY learnability DESC, item_id DESC LIMIT 50"
    ).replace("?", mark)
    bound = tuple(values[name] for name in named) if compiled.positiontup else values

    def run(statement: str, parameters: Any) -> Callable[[], Sequence[Any]]:
        def call() -> Sequence[Any]:
            cursor = driver.cursor()
            cursor.execute(statement, parameters)
            rows = cursor.fetchall()
            cursor.close()
            return rows

        return call

    return run(str(compiled), bound), run(hand, (1, tag, "learnable", 0.2, 0.8))


def _in_turns(
    one: Callable[[], Any], other: Callable[[], Any], repeats: int, clock: Clock
) -> tuple[list[float], list[float]]:
    first: list[float] = []
    second: list[float] = []
    for _ in range(repeats):
        first += _times(one, 1, clock)
        second += _times(other, 1, clock)
    return first, second


def _times(call: Callable[[], Any], repeats: int, clock: Clock) -> list[float]:
    found = []
    for _ in range(repeats):
        began = clock()
        call()
        found.append(1_000 * (clock() - began))
    return found


def _clock(registry: LocalRegistry) -> Clock:
    """An embedded database works in this process, so that its CPU time is the measure on a busy machine."""
    return time.process_time if registry.database.is_sqlite else time.perf_counter


def ingest(registry: LocalRegistry, floor: LocalRegistry, label: str, outcomes: int = 20_000) -> Iterator[Row]:
    """Seconds to append outcomes to an empty registry of 2,000 tasks, against the database's own bulk path.

    The floor inserts the same outcome rows into the same table with the same indices, as many a transaction, and
    does nothing else. Ours is split: the outcome rows (duplicates looked for), and all of it (records kept,
    estimates, states and audit brought up to date).
    """
    tasks = 2_000
    for one in (registry, floor):
        fill(one, tasks, 0)
    rng = np.random.default_rng(1)
    items, passes = rng.integers(1, tasks + 1, outcomes), rng.random(outcomes) < 0.5
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
    outcome = Outcome(
        outcome_class="model_success" if passed else "model_failure",
        cause="finished",
        reward=float(passed),
        graded=True,
        in_gradient=True,
        in_baseline=True,
        redispatch=False,
        counts_in_eval=True,
    )
    return EpisodeRecord(
        episode_id=f"episode-{number}",
        slug=f"task-{item}",
        task_digest=f"{item:064x}",
        verifier_digest="0" * 64,
        policy=_POLICY,
        weight_version_oldest=0,
        outcome=outcome,
        started_at=float(number),
    )

"""Fill an empty registry with many tasks and ten outcomes for each, in SQL.

    python -m benchmarks.large_registry URL [--tasks 1000000]

Pushing a million directories would measure the disk. True pass rates are Beta(0.35, 0.35); each task's standing is
what `registry.saturation.states` makes of its ten outcomes. Three tags lie on 10, 1 and 0.1 % of the tasks, a family
on a thousand. There are no packages, check reports or audit lines behind the rows, so that tasks can be listed and
queried but not fetched or rebuilt.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, insert, text
from sqlalchemy.orm import Session

from envsdk.digest import canonical, sha256_hex
from envsdk.episode.record import PolicyId
from registry.db import Base, Item, ItemTag, Lineage, Outcome, Policy, Standing, StandingTag, Tag
from registry.derive.fold import standing_values
from registry.derive.tallies import recount
from registry.local import LocalRegistry
from registry.saturation.posterior import interval
from registry.saturation.states import Track, step

SHARES = {"common": 0.1, "unusual": 0.01, "rare": 0.001}
OUTCOMES = 10
FAMILY = 1_000
LINEAGE = 1
_POLICY = PolicyId(model="small", lineage="small")
_FIRST_FAMILY_TAG = len(SHARES) + 1

_ITEMS = """
INSERT INTO item (id, task_digest, verifier_digest, slug, family, tags, spec, search_text, package, verified, broken,
                  flaky, ungraded_run, created_at)
SELECT item, {digest}, '{zeros}', 'task-' || item, 'family-' || (item % :families),
       {json}('[' || CASE WHEN common THEN '"common"' || CASE WHEN rare OR unusual THEN ',' ELSE '' END ELSE '' END
                  || CASE WHEN rare THEN '"rare"' || CASE WHEN unusual THEN ',' ELSE '' END ELSE '' END
                  || CASE WHEN unusual THEN '"unusual"' ELSE '' END || ']'),
       {json}('{{}}'),
       'task-' || item || ' family-' || (item % :families) || ' read the file, find each line of kind '
           || 'common' || (item % 10) || ' and write them to answer' || (item % 1000) || ', but not seldom'
           || (item % 20000) || '.',
       '{zeros}', 'checked', {false}, {false}, 0, 0
FROM draw ORDER BY item
"""
_OUTCOMES = """
INSERT INTO outcome (id, episode_id, item_id, policy_id, lineage_id, weight_version, outcome_class, cause, passed,
                     reward, group_id, seconds, tokens, started_at, run_id)
SELECT :before + item, {episode}, item, 1, 1, 0,
       CASE WHEN k > :round THEN 'model_success' ELSE 'model_failure' END, 'finished', k > :round,
       CASE WHEN k > :round THEN 1.0 ELSE 0.0 END, '', 1.5, 20, :before + item, NULL
FROM draw ORDER BY item
"""
_DIALECTS = {
    "sqlite": {
        "digest": "printf('%064x', item)",
        "episode": "printf('%032x', :before + item)",
        "json": "",
        "false": "0",
        "zeros": "0" * 64,
    },
    "postgresql": {
        "digest": "lpad(to_hex(item), 64, '0')",
        "episode": "lpad(to_hex(:before + item), 32, '0')",
        "json": "pg_temp.as_json",
        "false": "false",
        "zeros": "0" * 64,
    },
}


def fill(registry: LocalRegistry, tasks: int, *, outcomes: int = OUTCOMES) -> None:
    """Fill ``registry``, which must be empty, with ``tasks`` tasks and ``outcomes`` outcomes for each."""
    engine = registry.database.engine
    sqlite = registry.database.is_sqlite
    with engine.connect() as connection:
        if sqlite:
            connection.connection.execute("PRAGMA foreign_keys = OFF")
            connection.commit()
        with connection.begin():
            if not sqlite:
                connection.execute(text("SET LOCAL session_replication_role = replica"))
            _names(connection, tasks)
            _draw(connection, tasks, outcomes)
            with _indexed_at_the_end(connection, Item, ItemTag, Standing, StandingTag, Outcome):
                _fill(connection, tasks, outcomes, _DIALECTS[connection.dialect.name])
            with Session(connection, join_transaction_mode="create_savepoint") as session:
                recount(session)
                session.commit()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE" if sqlite else "VACUUM ANALYZE"))
    engine.dispose()


def _names(connection: Connection, tasks: int) -> None:
    identity = _POLICY.model_dump(mode="json")
    uncounted = {"episodes": 0, "graded": 0}
    connection.execute(insert(Lineage).values(id=LINEAGE, name="small", is_reference=True, created_at=0.0, **uncounted))
    key = sha256_hex(canonical(identity))
    connection.execute(insert(Policy).values(id=1, key=key, lineage_id=1, model=_POLICY.model, identity=identity))
    names = [("tag", name, int(tasks * share)) for name, share in SHARES.items()]
    names += [("family", f"family-{number}", FAMILY) for number in range(_families(tasks))]
    rows = [
        {"id": place, "kind": kind, "name": name, "items": count} for place, (kind, name, count) in enumerate(names, 1)
    ]
    connection.execute(insert(Tag), rows)


def _families(tasks: int) -> int:
    return max(1, tasks // FAMILY)


def _draw(connection: Connection, tasks: int, outcomes: int) -> None:
    """A row a task: how many of its outcomes pass, and which tags it carries."""
    rng = np.random.default_rng(0)
    passes = rng.binomial(outcomes, rng.beta(0.35, 0.35, tasks))
    carried = [(rng.random(tasks) < share).tolist() for share in SHARES.values()]
    columns = ", ".join(f"{name} BOOLEAN" for name in SHARES)
    connection.execute(text(f"CREATE TEMP TABLE draw (item INTEGER PRIMARY KEY, k INTEGER, {columns})"))
    rows = zip(range(1, tasks + 1), passes.tolist(), *carried, strict=True)
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        driver.executemany("INSERT INTO draw VALUES (?, ?, ?, ?, ?)", rows)
        return
    with driver.cursor() as cursor, cursor.copy("COPY draw FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


@contextmanager
def _indexed_at_the_end(connection: Connection, *models: type[Base]) -> Iterator[None]:
    tables = [table for model in models if isinstance(table := model.__table__, Table)]
    for table in tables:
        for index in table.indexes:
            index.drop(connection)
    yield
    for table in tables:
        for index in table.indexes:
            index.create(connection)


def _fill(connection: Connection, tasks: int, outcomes: int, words: dict[str, str]) -> None:
    families = _families(tasks)
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("CREATE FUNCTION pg_temp.as_json(text) RETURNS json LANGUAGE sql IMMUTABLE AS 'SELECT $1::json'")
        )
    connection.execute(text(_ITEMS.format(**words)), {"families": families})
    for number, name in enumerate(SHARES, start=1):
        connection.execute(text(f"INSERT INTO item_tag (item_id, tag_id) SELECT item, {number} FROM draw WHERE {name}"))
    connection.execute(
        text("INSERT INTO item_tag (item_id, tag_id) SELECT item, :first + item % :families FROM draw"),
        {"first": _FIRST_FAMILY_TAG, "families": families},
    )
    for passes in range(outcomes + 1):
        values = _standing(passes, outcomes)
        named = ", ".join(values)
        statement = f"INSERT INTO standing (lineage_id, item_id, folded_to, {named}) "
        last = f"{(outcomes - 1) * tasks} + item" if outcomes else "0"
        statement += f"SELECT 1, item, {last}, {', '.join(_literal(value) for value in values.values())} "
        statement += "FROM draw WHERE k = :passes ORDER BY item"
        connection.execute(text(statement), {"passes": passes})
    connection.execute(
        text(
            "INSERT INTO standing_tag (lineage_id, item_id, tag_id, status, learnability, mean) "
            "SELECT s.lineage_id, s.item_id, t.tag_id, s.status, s.learnability, s.mean "
            "FROM item_tag t JOIN standing s ON s.lineage_id = 1 AND s.item_id = t.item_id"
        )
    )
    for number in range(outcomes):
        connection.execute(text(_OUTCOMES.format(**words)), {"before": number * tasks, "round": number})


def _standing(passes: int, outcomes: int) -> dict[str, Any]:
    """The standing of a task whose first ``passes`` outcomes passed and whose others failed."""
    track = Track()
    for number in range(outcomes):
        track, _ = step(track, number < passes)
    low, high = interval(track.posterior)
    return standing_values(track.phase, track, low, high, track.posterior) | {"updated_at": 0.0}


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else repr(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--tasks", type=int, default=1_000_000)
    options = parser.parse_args()
    began = time.monotonic()
    with LocalRegistry(options.url, blobs_url="memory://") as registry:
        fill(registry, options.tasks)
    size = f"{options.tasks:,} tasks, {OUTCOMES * options.tasks:,} outcomes"
    print(f"filled with {size} in {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()

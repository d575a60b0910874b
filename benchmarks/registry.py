"""Every figure of the registry with its bar, in one run.

    python -m benchmarks.registry [--data DIR] [--postgres URL] [--large URL]... [--only fit,screening,...] [--json]

``--data`` holds the public response tables, ``--postgres`` names a server on which databases can be made, ``--large`` a
registry that `benchmarks.large_registry` filled. What needs one that is not given is left out and named; ingest is
measured on SQLite always.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from benchmarks import registry_ingest, registry_queries
from benchmarks import registry_statistics as statistics
from benchmarks.registry_statistics import Row
from registry.local import LocalRegistry


def figures(options: argparse.Namespace) -> dict[str, Callable[[], Iterator[Row]]]:
    """Every figure by name."""
    data: Path | None = options.data
    found: dict[str, Callable[[], Iterator[Row]]] = {"fit": lambda: statistics.fit_speed(data)}
    if data is not None:
        found["screening"] = lambda: statistics.screening(data)
    found["retirements"] = statistics.retirements
    found["prediction"] = lambda: chain(statistics.prediction(), statistics.unseen_levels())
    if options.large:
        found["query"] = lambda: _large(options, registry_queries.queries)
        found["words"] = lambda: _large(options, registry_queries.words)
        found["pages"] = lambda: _large(options, registry_queries.pages)
    found["ingest"] = lambda: _databases(options)
    return found


def _large(options: argparse.Namespace, measure: Callable[[LocalRegistry, str], Iterator[Row]]) -> Iterator[Row]:
    for url in options.large:
        with LocalRegistry(url, blobs_url="memory://") as registry:
            yield from measure(registry, "SQLite" if registry.database.is_sqlite else "PostgreSQL")


def _databases(options: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="envsdk-bench-") as folder:
        yield from registry_ingest.ingest(lambda name: LocalRegistry(f"sqlite:///{folder}/{name}.sqlite"), "SQLite")
    if options.postgres:
        import psycopg

        made: list[str] = []

        def fresh(name: str) -> LocalRegistry:
            database_name = f"bench_{name}_{time.time_ns()}"
            with psycopg.connect(options.postgres.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {database_name}")
            made.append(database_name)
            return LocalRegistry(options.postgres.rsplit("/", 1)[0] + f"/{database_name}", blobs_url="memory://")

        yield from registry_ingest.ingest(fresh, "PostgreSQL")
        with psycopg.connect(options.postgres.replace("+psycopg", ""), autocommit=True) as connection:
            for name in made:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--postgres", default="")
    parser.add_argument("--large", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    known = figures(options)
    wanted = [name for name in options.only.split(",") if name] or list(known)
    rows: list[Row] = []
    for name in wanted:
        if name not in known:
            print(f"left out: {name} (it needs --data or --large)", file=sys.stderr)
            continue
        for row in known[name]():
            rows.append(row)
            print(f"{'✔' if row.met else '✘'} {row.figure}: {row.value}   bar {row.bar}", file=sys.stderr)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    if options.json:
        print(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}))
    else:
        print("| figure | measured | bar |\n|---|---|---|")
        for row in rows:
            print(f"| {row.figure} | {row.value} | {row.bar} |")
        print(f"\n{machine}")


if __name__ == "__main__":
    main()

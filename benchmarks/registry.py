"""Every figure of the registry with its bar, in one run.

    python -m benchmarks.registry --data DIR [--only fit,screening,...] [--tasks 1000000] [--outcomes 2000000] [--json]

``--data`` holds the public response tables; without it the figures that need them are left out and named.
``--postgres`` names an empty PostgreSQL database; SQLite is measured always.
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
from pathlib import Path

from benchmarks import registry_database as database
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
    found["prediction"] = statistics.prediction
    found["query"] = lambda: _databases(options, _queries)
    found["ingest"] = lambda: _databases(options, _ingest)
    return found


Measure = Callable[[argparse.Namespace, Callable[[str], LocalRegistry], str], Iterator[Row]]


def _databases(options: argparse.Namespace, measure: Measure) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="envsdk-bench-") as folder:
        yield from measure(options, lambda name: LocalRegistry(f"sqlite:///{folder}/{name}.sqlite"), "SQLite")
    if options.postgres:
        import psycopg

        made: list[str] = []

        def fresh(name: str) -> LocalRegistry:
            database_name = f"bench_{name}_{time.time_ns()}"
            with psycopg.connect(options.postgres.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {database_name}")
            made.append(database_name)
            return LocalRegistry(options.postgres.rsplit("/", 1)[0] + f"/{database_name}")

        yield from measure(options, fresh, "PostgreSQL")
        with psycopg.connect(options.postgres.replace("+psycopg", ""), autocommit=True) as connection:
            for name in made:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _queries(options: argparse.Namespace, fresh: Callable[[str], LocalRegistry], label: str) -> Iterator[Row]:
    with fresh("query") as registry:
        began = time.monotonic()
        database.fill(registry, options.tasks, options.outcomes)
        size = f"{options.tasks:,} tasks, {options.outcomes:,} outcomes"
        print(f"{label}: filled with {size} in {time.monotonic() - began:.0f} s", file=sys.stderr)
        yield from database.queries(registry, label)


def _ingest(_options: argparse.Namespace, fresh: Callable[[str], LocalRegistry], label: str) -> Iterator[Row]:
    with fresh("ours") as registry, fresh("floor") as floor:
        yield from database.ingest(registry, floor, label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--outcomes", type=int, default=2_000_000)
    parser.add_argument("--postgres", default="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    known = figures(options)
    wanted = [name for name in options.only.split(",") if name] or list(known)
    rows: list[Row] = []
    for name in wanted:
        if name not in known:
            print(f"left out: {name} (it needs --data)", file=sys.stderr)
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

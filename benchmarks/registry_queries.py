"""Queries of a registry that `benchmarks.large_registry` filled: database time, the whole call, free words, the page.

Ours and the best hand-written SQL take turns on one driver's cursor, values bound in both, so that what else the
machine does hits both. All is wall-clock time; the whole call's CPU time stands beside it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from benchmarks.large_registry import SHARES
from benchmarks.registry_statistics import Row
from registry.db import Item
from registry.local import LocalRegistry
from registry.query import parse
from registry.query.sql import compile_query

_QUERY = "status:learnable tag:{tag} p:0.2..0.8 sort:-learnability"
_WORDS = {
    "a word of 1 in 20,000 tasks": "seldom77",
    "a word of 1 in 1,000": "answer77",
    "a word of 1 in 10": "common7",
    "a word of 1 in 10, with a tag on 1 %": "common7 tag:unusual",
}
_PAGES = {
    "/tasks": "first page",
    "/tasks?q=status%3Alearnable+tag%3Acommon": "page of a query",
    "/policies": "list of policies",
}
_PAGE_BARS_MS = {1_000_000: 150, 10_000: 60}


def queries(registry: LocalRegistry, label: str, repeats: int = 300) -> Iterator[Row]:
    """Database time of a page's ids against hand-written SQL, and the whole call, for each tag."""
    for tag, share in SHARES.items():
        q = _QUERY.format(tag=tag)
        with registry.database.reading() as session:
            ours, floor = _statements(session, q, list(SHARES).index(tag) + 1)
            assert ours() == floor(), "both must find the same rows"
            ours_ms, floor_ms = _in_turns(ours, floor, repeats)
        ratio = float(np.median(ours_ms) / np.median(floor_ms))
        said = f"{np.median(ours_ms):.3f} ms against {np.median(floor_ms):.3f} ms: {ratio:.2f}x"
        yield Row(f"{label}: query, tag on {100 * share:g} % of tasks, database time", said, "<= 1.3x", ratio <= 1.3)
        yield _whole_call(registry, f"{label}: whole call, tag on {100 * share:g} %", q, repeats, bar_ms=5)


def words(registry: LocalRegistry, label: str, repeats: int = 100) -> Iterator[Row]:
    """The whole call of queries with free words."""
    for what, q in _WORDS.items():
        yield _whole_call(registry, f"{label}: whole call, {what}", q, repeats, bar_ms=None)


def _whole_call(registry: LocalRegistry, figure: str, q: str, repeats: int, *, bar_ms: float | None) -> Row:
    began = time.process_time()
    p50, p95 = np.percentile(_times(lambda: registry.query(q), repeats), [50, 95])
    cpu_ms = 1_000 * (time.process_time() - began) / (repeats + _WARM)
    bar, met = ("(no bar)", True) if bar_ms is None else (f"p95 <= {bar_ms:g} ms", bool(p95 <= bar_ms))
    return Row(figure, f"p50 {p50:.2f} ms, p95 {p95:.2f} ms; {cpu_ms:.2f} ms of CPU in this process", bar, met)


def pages(registry: LocalRegistry, label: str, repeats: int = 100) -> Iterator[Row]:
    """Milliseconds from a request to the whole answer of a served registry, over loopback."""
    with registry.database.reading() as session:
        tasks = session.scalar(select(func.count()).select_from(Item)) or 0
    bar_ms = _PAGE_BARS_MS.get(tasks)
    with _served(registry.url) as address, httpx2.Client(base_url=address, timeout=60) as client:
        for path, name in _PAGES.items():

            def get(path: str = path) -> None:
                assert client.get(path).status_code == 200

            p50, p95 = np.percentile(_times(get, repeats), [50, 95])
            barred = bar_ms is not None and path.startswith("/tasks")
            bar, met = (f"p95 <= {bar_ms} ms", bool(p95 <= bar_ms)) if barred else ("(no bar)", True)
            yield Row(f"{label}: {name} of {tasks:,} tasks", f"p50 {p50:.1f} ms, p95 {p95:.1f} ms", bar, met)


@contextmanager
def _served(url: str) -> Iterator[str]:
    program = str(Path(sys.executable).with_name("envsdk"))
    command = [program, "registry", "serve", "--port", "0", "--no-worker", "--registry", url]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().strip()
        finally:
            process.terminate()


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
            rows: Sequence[Any] = cursor.fetchall()
            cursor.close()
            return rows

        return call

    return run(str(compiled), bound), run(hand, (1, tag, "learnable", 0.2, 0.8))


def _in_turns(one: Callable[[], Any], other: Callable[[], Any], repeats: int) -> tuple[list[float], list[float]]:
    first: list[float] = []
    second: list[float] = []
    for _ in range(repeats):
        first += _times(one, 1, warm=0)
        second += _times(other, 1, warm=0)
    return first, second


_WARM = 3
"""Calls before the clock starts."""


def _times(call: Callable[[], Any], repeats: int, *, warm: int = _WARM) -> list[float]:
    for _ in range(warm):
        call()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        found.append(1_000 * (time.perf_counter() - began))
    return found

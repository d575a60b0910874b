"""A registry in this process: a database and a blob store, behind the calls of `registry.client.RegistryClient`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from envsdk.checks.report import CheckReport
from envsdk.episode.record import EpisodeRecord
from envsdk.spec.model import Task
from registry.blobs import open_blobs
from registry.client import Pair
from registry.db.engine import open_database
from registry.estimates import Posterior, posteriors_of
from registry.outcomes import AppendResult, append_lines, append_records
from registry.query.page import PAGE_SIZE, Page, run_query
from registry.sets import TaskSetRevision, load_revision, resolve_query
from registry.tasks import PushResult, fetch_task, push_tasks


class LocalRegistry:
    """An open registry.

    ``database`` and ``blobs`` are there for the rooms behind the door (web, refresh, commands).
    """

    def __init__(self, url: str, *, blobs_url: str | None = None) -> None:
        self.url = url
        self.database = open_database(url)
        self.blobs = open_blobs(blobs_url, database_url=url)

    def push(self, tasks: Iterable[Task], reports: Iterable[CheckReport] = ()) -> PushResult:
        return push_tasks(self.database, self.blobs, tasks, reports)

    def query(self, q: str, *, limit: int | None = None, cursor: str | None = None, exact_total: bool = False) -> Page:
        with self.database.reading() as session:
            return run_query(session, q, size=limit or PAGE_SIZE, cursor=cursor, exact_total=exact_total)

    def resolve(self, q: str, *, name: str = "") -> TaskSetRevision:
        with self.database.writing() as session:
            return resolve_query(session, q, name=name)

    def revision(self, reference: str) -> TaskSetRevision:
        with self.database.reading() as session:
            return load_revision(session, reference)

    def fetch(self, task_digest: str, verifier_digest: str, dest: Path) -> Task:
        return fetch_task(self.database, self.blobs, (task_digest, verifier_digest), dest)

    def append(self, records: Sequence[EpisodeRecord], *, run: str = "") -> AppendResult:
        return append_records(self.database, records, run=run)

    def append_lines(
        self, lines: Iterable[bytes], *, run: str = "", progress: Callable[[AppendResult], None] = lambda _: None
    ) -> AppendResult:
        return append_lines(self.database, lines, run=run, progress=progress)

    def posteriors(self, pairs: Iterable[Pair], *, lineage: str = "") -> dict[Pair, Posterior]:
        with self.database.reading() as session:
            return posteriors_of(session, pairs, lineage=lineage)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

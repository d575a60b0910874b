"""The door to a registry: the same calls in process (a database URL) and over HTTP (a server's URL).

    with open_registry() as registry:
        page = registry.query("status:learnable tag:shell limit:64")
        lock = registry.resolve("status:learnable tag:shell limit:64", name="shell")

Calls are synchronous and thread-safe; an asynchronous caller runs them in a thread. Importing this module imports no
database driver and no web framework.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from envsdk import home
from envsdk.checks.report import CheckReport
from envsdk.config import setting
from envsdk.episode.record import EpisodeRecord
from envsdk.spec.model import Task

if TYPE_CHECKING:
    from registry.estimates import Posterior
    from registry.outcomes import AppendResult
    from registry.query.page import Page
    from registry.sets import TaskSetRevision
    from registry.tasks import PushResult

Pair = tuple[str, str]
"""Task digest and verifier digest."""


class RegistryClient(Protocol):
    """What a registry does for a program. Raises `UsageError` for the caller's faults, `StoreError` for its own."""

    url: str

    def push(self, tasks: Iterable[Task], reports: Iterable[CheckReport] = ()) -> PushResult:
        """Store tasks and their check reports; without a complete, passing report a task is a draft."""
        ...

    def query(self, q: str, *, limit: int | None = None, cursor: str | None = None, exact_total: bool = False) -> Page:
        """One page of at most ``limit`` items (50); ``cursor`` is the ``next`` of the page before."""
        ...

    def resolve(self, q: str, *, name: str = "") -> TaskSetRevision:
        """Pin a query to an immutable task-set revision; number 0 and no items where it matches nothing."""
        ...

    def revision(self, reference: str) -> TaskSetRevision:
        """The task-set revision ``NAME``, ``NAME@NUMBER``, or of a digest."""
        ...

    def fetch(self, task_digest: str, verifier_digest: str, dest: Path) -> Task:
        """Write a task's directory to ``dest``, check its digests, and load it."""
        ...

    def append(self, records: Sequence[EpisodeRecord], *, run: str = "") -> AppendResult:
        """Store ended episodes, each once, and bring estimates and states up to date."""
        ...

    def append_lines(
        self, lines: Iterable[bytes], *, run: str = "", progress: Callable[[AppendResult], None] = ...
    ) -> AppendResult:
        """As `append`, from a ledger's JSON lines; ``progress`` hears what was acknowledged so far."""
        ...

    def posteriors(self, pairs: Iterable[Pair], *, lineage: str = "") -> dict[Pair, Posterior]:
        """Posteriors of pass rates for a lineage (the reference, where empty)."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_registry(url: str | None = None, *, token: str | None = None) -> RegistryClient:
    """Open a registry.

    Args:
        url: ``sqlite:///path``, ``postgresql+psycopg://...`` or ``http(s)://...``; else the setting ``registry``
            (``ENVSDK_REGISTRY``); else the embedded database in the data folder.
        token: for a server; else ``ENVSDK_TOKEN``.

    Raises:
        UsageError: no such kind of URL.
        StoreError: the database or the server cannot be reached.
    """
    target = url or setting("registry").value.strip() or f"sqlite:///{home.registry_path()}"
    if target.startswith(("http://", "https://")):
        from registry.remote import RemoteRegistry

        return RemoteRegistry(target, token=token or os.environ.get("ENVSDK_TOKEN", "").strip() or None)
    from registry.local import LocalRegistry

    return LocalRegistry(target)

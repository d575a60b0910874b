"""A registry behind a server: the calls of `registry.client.RegistryClient` over HTTP.

What may be sent again safely is sent again when the connection breaks or the server is busy: reads, and writes,
which are all idempotent. An error of the server comes back as the same class of error, with its code. Fields of an
answer that this client does not know are left out: a server may be newer than its clients.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx2
import stamina

from envsdk.checks.report import CheckReport
from envsdk.episode.record import EpisodeRecord
from envsdk.errors import EnvsdkError, StoreError, UsageError
from envsdk.spec.directory import open_directory
from envsdk.spec.model import Task
from registry.acceptance import Rejected
from registry.client import Pair
from registry.estimates import Posterior
from registry.outcomes import BATCH, AppendResult
from registry.query.page import PAGE_SIZE, Page, QueryItem
from registry.revisions import SetEntry
from registry.sets import LeftOut, TaskSetRevision
from registry.tasks import Pushed, PushResult, place_task

_PUSH_TASKS = 20
_REQUEST_BYTES = 8 << 20
_TIMEOUT_S = 60.0
_BUSY = frozenset({429, 502, 503, 504})
_FAULT = ("message", "code", "hint", "where")
# It logs each retry as a warning without an object, which a program that set up no logging would print.
logging.getLogger("stamina").addHandler(logging.NullHandler())


_Row = TypeVar("_Row", Pushed, Rejected, QueryItem, Posterior, SetEntry, LeftOut)


class _RetryError(Exception):
    """The server could not answer now; ``fault`` is what it said, where that was an envelope."""

    def __init__(self, status: int, fault: dict[str, str] | None) -> None:
        super().__init__(f"it answers {status}")
        self.status, self.fault = status, fault


class RemoteRegistry:
    """A registry server.

    Args:
        url: where it is.
        token: a bearer token; needed for writing, and for reading where the server is private.
        transport: what sends requests, for tests.

    Raises:
        UsageError: the URL names no server (``bad_registry_url``).
    """

    def __init__(self, url: str, *, token: str | None = None, transport: httpx2.BaseTransport | None = None) -> None:
        self.url = _checked(url.rstrip("/"))
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._http = httpx2.Client(base_url=self.url, headers=headers, timeout=_TIMEOUT_S, transport=transport)

    def push(self, tasks: Iterable[Task], reports: Iterable[CheckReport] = ()) -> PushResult:
        left = list(reports)
        pushed: list[Pushed] = []
        rejected: list[Rejected] = []
        iterator = iter(tasks)
        # Reports of tasks that come in a later request are sent with the last one, when all tasks are there.
        while packages := [_package(task) for task in islice(iterator, _PUSH_TASKS)]:
            answer = self._ask("POST", "/api/tasks", json={"packages": packages, "reports": []})
            pushed += [_known(Pushed, item) for item in answer["pushed"]]
            rejected += [_known(Rejected, item) for item in answer["rejected"]]
        if left:
            body = {"packages": [], "reports": [report.model_dump(mode="json") for report in left]}
            answer = self._ask("POST", "/api/tasks", json=body)
            rejected += [_known(Rejected, item) for item in answer["rejected"]]
            pushed = self._verified(pushed)
        return PushResult(tuple(pushed), tuple(rejected))

    def query(self, q: str, *, limit: int | None = None, cursor: str | None = None, exact_total: bool = False) -> Page:
        params: dict[str, Any] = {"q": q, "limit": limit or PAGE_SIZE, "exact_total": exact_total}
        answer = self._ask("GET", "/api/query", params=params | ({"cursor": cursor} if cursor else {}))
        items = tuple(_known(QueryItem, item | {"tags": tuple(item["tags"])}) for item in answer["items"])
        return Page(items, answer["next"], answer["total"], more=answer["more"])

    def resolve(self, q: str, *, name: str = "") -> TaskSetRevision:
        return _revision(self._ask("POST", "/api/sets", json={"q": q, "name": name})["set"])

    def revision(self, reference: str) -> TaskSetRevision:
        return _revision(self._ask("GET", f"/api/sets/{reference}")["set"])

    def fetch(self, task_digest: str, verifier_digest: str, dest: Path) -> Task:
        answer = self._ask("GET", f"/api/tasks/{task_digest}/{verifier_digest}/files")
        files = [(file["path"], file["mode"], base64.b64decode(file["data"])) for file in answer["files"]]
        return place_task(files, dest, expected=(task_digest, verifier_digest))

    def append(self, records: Sequence[EpisodeRecord], *, run: str = "") -> AppendResult:
        return self.append_lines((record.model_dump_json().encode() for record in records), run=run)

    def append_lines(
        self, lines: Iterable[bytes], *, run: str = "", progress: Callable[[AppendResult], None] = lambda _: None
    ) -> AppendResult:
        result = AppendResult()
        for first, body in _bodies(lines):
            answer = self._ask("POST", "/api/outcomes", params={"run": run, "first": first}, content=body)
            rejected = tuple(_known(Rejected, item) for item in answer["rejected"])
            result += AppendResult(answer["accepted"], answer["duplicate"], rejected)
            progress(result)
        return result

    def posteriors(self, pairs: Iterable[Pair], *, lineage: str = "") -> dict[Pair, Posterior]:
        answer = self._ask(
            "POST", "/api/posteriors", json={"pairs": [list(pair) for pair in pairs], "lineage": lineage}
        )
        found = {}
        for row in answer["posteriors"]:
            pair = (row.pop("task_digest"), row.pop("verifier_digest"))
            found[pair] = _known(Posterior, row)
        return found

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _verified(self, pushed: Sequence[Pushed]) -> list[Pushed]:
        """What was pushed before its report, as it stands now."""
        known = self.posteriors([(item.task_digest, item.verifier_digest) for item in pushed])
        return [
            Pushed(
                item.slug,
                item.task_digest,
                item.verifier_digest,
                new=item.new,
                verified="checked"
                if known[item.task_digest, item.verifier_digest].status != "draft"
                else item.verified,
                known_as=item.known_as,
            )
            for item in pushed
        ]

    def _ask(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        try:
            return self._again(method, path, request)
        except (_RetryError, httpx2.TransportError) as error:
            if isinstance(error, _RetryError) and error.fault is not None:
                raise _as_raised(error.fault, error.status) from error
            raise StoreError(
                f"the registry server does not answer: {error or type(error).__name__}",
                code="server_unreachable",
                where=self.url,
                hint="check the URL and that the server runs; sending everything again is safe",
            ) from error

    @stamina.retry(on=(_RetryError, httpx2.TransportError), attempts=4, timeout=30.0)
    def _again(self, method: str, path: str, request: dict[str, Any]) -> dict[str, Any]:
        response = self._http.request(method, path, **request)
        if response.status_code in _BUSY:
            raise _RetryError(response.status_code, next(iter(_faults(response) or ()), None))
        faults = _faults(response)
        if faults is None:
            raise StoreError(
                f"{path} answered {response.status_code} with no envelope",
                code="not_a_registry",
                hint="give the address that `envsdk registry serve` prints, and see that no proxy answers in its place",
                where=self.url,
            )
        if faults:
            raise _as_raised(faults[0], response.status_code)
        return dict(response.json())


def _known(kind: type[_Row], row: Mapping[str, Any]) -> _Row:
    """A row of an answer, without the fields that a newer server has and this client does not know."""
    return kind(**{one.name: row[one.name] for one in fields(kind) if one.name in row})


def _faults(response: httpx2.Response) -> list[dict[str, str]] | None:
    """The errors of an answer's envelope; `None` where it is none."""
    try:
        return [{name: str(fault[name]) for name in _FAULT} for fault in response.json()["errors"]]
    except (ValueError, KeyError, TypeError):
        return None


def _as_raised(fault: dict[str, str], status: int) -> EnvsdkError:
    """A server's error as the same class of error here."""
    kind = UsageError if status < 500 else StoreError
    return kind(fault["message"], code=fault["code"], hint=fault["hint"], where=fault["where"])


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port  # the port is judged only when it is asked for
    except ValueError:
        host, port = "", None
    if not host or any(character.isspace() for character in host) or port == 0:
        raise UsageError(f"{url!r} is no server's URL", code="bad_registry_url", hint="write http://HOST:PORT")
    return url


def _package(task: Task) -> dict[str, Any]:
    files = []
    for entry in open_directory(task.root).entries:
        data = entry.target.encode() if entry.target is not None else (task.root / entry.path).read_bytes()
        files.append({"path": entry.path, "mode": entry.mode, "data": base64.b64encode(data).decode()})
    return {"name": task.slug, "files": files}


def _bodies(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Requests of bounded size with the number of their first line; each is acknowledged by itself."""
    batch: list[bytes] = []
    first = 1
    size = 0
    for line in lines:
        batch.append(line.rstrip(b"\n"))
        size += len(line)
        if len(batch) >= BATCH or size >= _REQUEST_BYTES:
            yield first, b"\n".join(batch)
            first, size = first + len(batch), 0
            batch.clear()
    if batch:
        yield first, b"\n".join(batch)


def _revision(body: dict[str, Any]) -> TaskSetRevision:
    return TaskSetRevision(
        name=body["name"],
        revision=body["revision"],
        digest=body["digest"],
        items=tuple(_known(SetEntry, item) for item in body["items"]),
        query=body["query"],
        left_out=tuple(_known(LeftOut, item) for item in body["left_out"]),
    )

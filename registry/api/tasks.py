"""Task directories over HTTP: pushed as files, digested here, given back as files."""

from __future__ import annotations

import base64
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi import Path as PathParameter
from pydantic import Field
from starlette.responses import Response

from envsdk.checks.report import CheckReport
from envsdk.errors import EnvsdkError, UsageError
from envsdk.files.scratch import scratch
from envsdk.frozen import Frozen
from envsdk.spec.model import Task
from registry.acceptance import Rejected
from registry.api.answer import answered, done
from registry.api.guard import Guard
from registry.local import LocalRegistry
from registry.tasks import PushResult, package_files, place_task
from registry.web.caching import IMMUTABLE

HexDigest = Annotated[str, PathParameter(pattern=r"^[0-9a-f]{64}$")]


class FileBody(Frozen):
    """One file; of a link ``data`` is the target text. ``data`` is base64."""

    path: str = Field(min_length=1, max_length=4_096)
    mode: Literal["100644", "100755", "120000"]
    data: str


class PackageBody(Frozen):
    """A whole task directory. ``name`` is what errors call it."""

    name: str = Field(max_length=256)
    files: list[FileBody] = Field(max_length=100_000)


class PushBody(Frozen):
    """Task directories, and check reports of these or of tasks that were pushed before."""

    packages: list[PackageBody] = Field(default_factory=list, max_length=1_000)
    reports: list[CheckReport] = Field(default_factory=list, max_length=1_000)


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The endpoints over an open registry."""
    router = APIRouter()

    @router.post("/tasks", dependencies=[guard.may("push")])
    def push(body: PushBody) -> Response:
        """Store tasks and reports. Digests are computed here; a report of another digest is rejected."""
        with scratch("push") as folder:
            tasks, rejected = _placed(body.packages, folder)
            result = registry.push(tasks, body.reports)
        result = PushResult(result.pushed, tuple(rejected) + result.rejected)
        return done(
            pushed=[asdict(item) for item in result.pushed], rejected=[asdict(item) for item in result.rejected]
        )

    @router.get("/tasks/{task_digest}/{verifier_digest}/files")
    def files(request: Request, task_digest: HexDigest, verifier_digest: HexDigest) -> Response:
        """The task's directory, file by file."""
        found = package_files(registry.database, registry.blobs, (task_digest, verifier_digest))
        rows = [{"path": path, "mode": mode, "data": base64.b64encode(data).decode()} for path, mode, data in found]
        return answered(request, cache=IMMUTABLE, files=rows)

    return router


def _placed(packages: list[PackageBody], folder: Path) -> tuple[list[Task], list[Rejected]]:
    tasks: list[Task] = []
    rejected: list[Rejected] = []
    for number, package in enumerate(packages):
        try:
            files = [(file.path, file.mode, _decoded(file)) for file in package.files]
            tasks.append(place_task(files, folder / str(number)))
        except EnvsdkError as error:
            rejected.append(Rejected(package.name, error.code, error.message))
    return tasks, rejected


def _decoded(file: FileBody) -> bytes:
    try:
        return base64.b64decode(file.data, validate=True)
    except ValueError as error:
        raise UsageError(
            f"{file.path}: the data is no base64", code="bad_base64", hint="send the file's bytes in standard base64"
        ) from error

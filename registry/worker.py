"""The process that does background jobs: it may load policies and sandboxes, which the web process never does.

One job at a time. The lease is renewed while the job runs; a job that was cancelled, or that another worker took up,
is abandoned at the next renewal. What a job stored stays: running it again goes on from there.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from envsdk.errors import EnvsdkError, UsageError
from registry.jobs import JobView, claim, finish, renew
from registry.local import LocalRegistry

_RENEW_S = 5.0
_IDLE_S = 1.0

Tell = Callable[[dict[str, Any]], None]
Work = Callable[[LocalRegistry, Mapping[str, Any], Path, Tell], Awaitable[dict[str, Any]]]


async def serve_jobs(registry: LocalRegistry, *, works: Mapping[str, Work] | None = None, forever: bool = True) -> int:
    """Do jobs until cancelled, or until none is left where not ``forever``; how many were done."""
    owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    known = WORKS if works is None else works
    done = 0
    while True:
        job = await asyncio.to_thread(_claim, registry, owner)
        if job is not None:
            await _do(registry, job, owner, known)
            done += 1
        elif not forever:
            return done
        else:
            await asyncio.sleep(_IDLE_S)


def _claim(registry: LocalRegistry, owner: str) -> JobView | None:
    with registry.database.writing() as session:
        return claim(session, owner)


async def _do(registry: LocalRegistry, job: JobView, owner: str, works: Mapping[str, Work]) -> None:
    progress: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="envsdk-job-") as folder:
        working = asyncio.ensure_future(_work(registry, job, works, Path(folder), progress.update))
        while not working.done():
            await asyncio.wait({working}, timeout=_RENEW_S)
            if not await asyncio.to_thread(_renew, registry, job, owner, dict(progress)):
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working
                return
    error = working.exception()
    with registry.database.writing() as session:
        if error is None:
            finish(session, job.id, owner, result=working.result())
        else:
            finish(session, job.id, owner, error=f"{getattr(error, 'code', 'internal_error')}: {error}")
    if error is not None and not isinstance(error, EnvsdkError):
        raise error


async def _work(
    registry: LocalRegistry, job: JobView, works: Mapping[str, Work], folder: Path, tell: Tell
) -> dict[str, Any]:
    if job.kind not in works:
        raise UsageError(f"no worker knows jobs of kind {job.kind!r}", code="unknown_job_kind")
    return await works[job.kind](registry, job.arguments, folder, tell)


def _renew(registry: LocalRegistry, job: JobView, owner: str, progress: dict[str, Any]) -> bool:
    with registry.database.writing() as session:
        return renew(session, job.id, owner, progress)


async def _calibrate(registry: LocalRegistry, arguments: Mapping[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    from registry.calibration.job import calibrate_query

    campaign = await calibrate_query(
        registry,
        str(arguments.get("q", "")),
        policy=str(arguments.get("policy", "")),
        folder=folder,
        heard=lambda campaign: tell(
            {"tasks_done": len(campaign.measured), "tasks": campaign.tasks, "episodes": campaign.episodes}
        ),
    )
    return {"tasks": len(campaign.measured), "episodes": campaign.episodes, "fixed": campaign.fixed}


async def _refresh(registry: LocalRegistry, arguments: Mapping[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    from registry.refresh.job import propose_refresh

    number, body = await propose_refresh(
        registry,
        str(arguments.get("set", "")),
        lineage=str(arguments.get("lineage", "")),
        policy=str(arguments.get("policy", "")),
        folder=folder,
        heard=lambda found, wanted: tell({"replacements": found, "wanted": wanted}),
    )
    return {"proposal": number, "retire": len(body["retire"]), "add": len(body["add"])}


WORKS: Mapping[str, Work] = {"calibrate": _calibrate, "refresh": _refresh}

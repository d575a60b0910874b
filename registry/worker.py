"""The process that does background jobs: it may load policies and sandboxes, which the web process never does.

One job at a time. The lease is renewed while the job runs; a job that was cancelled, or that another worker took up,
is abandoned at the next renewal. What a job stored stays: running it again goes on from there. A worker that is
stopped gives its job back, so that the next one takes it up at once; one that is killed leaves it until its lease ends.
A job that fails, be it by a defect, ends that job: the worker tells its log and goes on with the next.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from envsdk.errors import EnvsdkError, StoreError, UsageError
from envsdk.files.scratch import scratch
from registry.jobs import LEASE_S, JobView, claim, finish, release, renew
from registry.local import LocalRegistry

if TYPE_CHECKING:
    from registry.calibration.campaign import Campaign

_RENEW_S = 2.0
_IDLE_S = 1.0

_LOG = logging.getLogger("registry.worker")
_T = TypeVar("_T")
Tell = Callable[[dict[str, Any]], None]
Work = Callable[[LocalRegistry, Mapping[str, Any], Path, Tell], Awaitable[dict[str, Any]]]


async def serve_jobs(registry: LocalRegistry, *, works: Mapping[str, Work] | None = None, forever: bool = True) -> int:
    """Do jobs until cancelled, or until none is left where not ``forever``; how many were done."""
    owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    known = WORKS if works is None else works
    done = 0
    while True:
        job = await _insist(lambda: _claim(registry, owner))
        if job is not None:
            await _do(registry, job, owner, known)
            done += 1
        elif not forever:
            return done
        else:
            await asyncio.sleep(_IDLE_S)


async def _insist(act: Callable[[], _T]) -> _T:
    """What ``act`` gives, in a thread; a database that is gone is asked again for as long as a lease lasts."""
    deadline = time.monotonic() + LEASE_S
    while True:
        try:
            return await asyncio.to_thread(act)
        except StoreError as error:
            if time.monotonic() > deadline:
                raise
            _LOG.warning("the database does not answer, trying again: %s", error)
            await asyncio.sleep(_IDLE_S)


def _claim(registry: LocalRegistry, owner: str) -> JobView | None:
    with registry.database.writing() as session:
        return claim(session, owner)


async def _do(registry: LocalRegistry, job: JobView, owner: str, works: Mapping[str, Work]) -> None:
    progress: dict[str, Any] = {}
    with scratch("job") as folder:
        working = asyncio.ensure_future(_work(registry, job, works, folder, progress.update))
        try:
            while not working.done():
                await asyncio.wait({working}, timeout=_RENEW_S)
                if not await _insist(lambda: _renew(registry, job, owner, dict(progress))):
                    await _stopped(working)
                    return
        except asyncio.CancelledError:
            await _stopped(working)
            with registry.database.writing() as session:  # in this thread: nothing may be awaited any more
                release(session, job.id, owner)
            raise
    error = working.exception()
    result = {} if error is not None else working.result()
    await _insist(lambda: _finish(registry, job, owner, result, _said(error)))
    if error is not None and not _expected(error):
        _LOG.error("job %d failed with a defect", job.id, exc_info=error)


def _finish(registry: LocalRegistry, job: JobView, owner: str, result: dict[str, Any], error: str) -> None:
    with registry.database.writing() as session:
        finish(session, job.id, owner, result=result, error=error)


def _expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_expected, error.exceptions))
    return isinstance(error, EnvsdkError)


def _said(error: BaseException | None) -> str:
    """``code: message`` of an error; of a group of them, what its first says."""
    if error is None:
        return ""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{getattr(error, 'code', 'internal_error')}: {error}"


async def _stopped(working: asyncio.Future[dict[str, Any]]) -> None:
    working.cancel()
    with suppress(asyncio.CancelledError, EnvsdkError):
        await working


async def _work(
    registry: LocalRegistry, job: JobView, works: Mapping[str, Work], folder: Path, tell: Tell
) -> dict[str, Any]:
    if job.kind not in works:
        raise UsageError(
            f"no worker knows jobs of kind {job.kind!r}",
            code="unknown_job_kind",
            hint="start a worker of the version that took the job",
        )
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
            {
                "tasks_done": len(campaign.measured),
                "tasks": campaign.tasks,
                "episodes": campaign.episodes,
                "left_s": campaign.progress().eta_s,
            }
        ),
    )
    return {"tasks": len(campaign.measured), "episodes": campaign.episodes, "fixed": campaign.fixed}


async def _refresh(registry: LocalRegistry, arguments: Mapping[str, Any], folder: Path, tell: Tell) -> dict[str, Any]:
    from registry.refresh.job import propose_refresh

    rounds: list[Campaign] = []

    def looked(campaign: Campaign) -> None:
        if not any(campaign is one for one in rounds):
            rounds.append(campaign)  # each round of draws is measured by itself
        tell({"episodes": sum(one.episodes for one in rounds)})

    number, body = await propose_refresh(
        registry,
        str(arguments.get("set", "")),
        lineage=str(arguments.get("lineage", "")),
        policy=str(arguments.get("policy", "")),
        folder=folder,
        heard=lambda found, wanted: tell({"replacements": found, "wanted": wanted}),
        looked=looked,
    )
    return {"proposal": number, "retire": len(body["retire"]), "add": len(body["add"])}


WORKS: Mapping[str, Work] = {"calibrate": _calibrate, "refresh": _refresh}

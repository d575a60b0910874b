"""Background jobs with leases: work that survives the worker that began it.

A worker claims a job for a minute and renews the lease while it works. Where it dies the lease runs out and another
worker takes the job up; after three attempts it is failed. A lease that ends further off than any that is given was
made before the clock ran back, and holds nothing. Jobs are safe to run twice: what they store is idempotent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from envsdk.errors import UsageError
from registry.db import Job

LEASE_S = 60.0
_APART_S = 60.0
"""Clocks of two workers may differ by so much before one takes up what the other is at."""
MAX_ATTEMPTS = 3
ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it is shown. ``state``: queued, running, done, failed or cancelled."""

    id: int
    kind: str
    state: str
    arguments: dict[str, Any]
    progress: dict[str, Any]
    result: dict[str, Any]
    error: str
    attempts: int
    created_at: float
    ended_at: float | None


def enqueue(session: Session, kind: str, arguments: dict[str, Any], *, idempotency_key: str | None = None) -> JobView:
    """Ask for a job; with a key that was used before, the job that it made.

    Raises:
        UsageError: the key was used for something else (``conflict``).
    """
    if idempotency_key is not None:
        known = session.scalar(select(Job).where(Job.idempotency_key == idempotency_key))
        if known is not None:
            if (known.kind, known.arguments) != (kind, arguments):
                raise UsageError(
                    "the idempotency key was used for another job", code="conflict", hint="take a new key for a new job"
                )
            return view(known)
    job = Job(
        kind=kind,
        idempotency_key=idempotency_key,
        arguments=arguments,
        progress={},
        result={},
        created_at=time.time(),
        ended_at=None,
    )
    session.add(job)
    session.flush()
    return view(job)


def find_open(session: Session, kind: str, arguments: dict[str, Any]) -> JobView | None:
    """The oldest job of the same kind and arguments that has not ended, where there is one."""
    open_jobs = select(Job).where(Job.state.in_(("queued", "running")), Job.kind == kind).order_by(Job.id)
    return next((view(job) for job in session.scalars(open_jobs) if job.arguments == arguments), None)


def claim(session: Session, owner: str, *, now: float | None = None) -> JobView | None:
    """Take the oldest job that nobody works on; `None` where there is none. Must run in a write transaction.

    A job whose lease ran out for the third time is failed instead.
    """
    now = time.time() if now is None else now
    free = (Job.lease_until < now) | (Job.lease_until > now + LEASE_S + _APART_S)
    for job in session.scalars(
        select(Job).where((Job.state == "queued") | ((Job.state == "running") & free)).order_by(Job.id)
    ):
        if job.attempts >= MAX_ATTEMPTS:
            job.state, job.ended_at = "failed", now
            job.error = job.error or f"its worker died {MAX_ATTEMPTS} times"
            continue
        job.state, job.lease_owner, job.lease_until = "running", owner, now + LEASE_S
        job.attempts += 1
        return view(job)
    return None


def renew(session: Session, number: int, owner: str, progress: dict[str, Any], *, now: float | None = None) -> bool:
    """Renew the lease and store progress.

    False where the job is no longer ours (cancelled, or taken up by another).
    """
    now = time.time() if now is None else now
    job = session.get(Job, number)
    if job is None or job.state != "running" or job.lease_owner != owner:
        return False
    job.lease_until, job.progress = now + LEASE_S, progress
    return True


def release(session: Session, number: int, owner: str) -> None:
    """Give a job that is still ours back unfinished, at once: a worker that is stopped did not die."""
    job = session.get(Job, number)
    if job is None or job.state != "running" or job.lease_owner != owner:
        return
    job.state, job.lease_owner, job.lease_until = "queued", "", 0.0
    job.attempts -= 1


def finish(session: Session, number: int, owner: str, *, result: dict[str, Any] | None = None, error: str = "") -> None:
    """End a job that is still ours: failed where there is an ``error``, else done."""
    job = session.get(Job, number)
    if job is None or job.state != "running" or job.lease_owner != owner:
        return
    job.state = "failed" if error else "done"
    job.result, job.error, job.ended_at = result or {}, error, time.time()


def cancel(session: Session, number: int) -> JobView:
    """Cancel a job; one that has ended stays as it is.

    Raises:
        UsageError: there is none (``unknown_job``).
    """
    job = session.get(Job, number)
    if job is None:
        raise _unknown(number)
    if job.state not in ENDED:
        job.state, job.ended_at = "cancelled", time.time()
    return view(job)


def find_job(session: Session, number: int) -> JobView:
    """One job.

    Raises:
        UsageError: there is none (``unknown_job``).
    """
    job = session.get(Job, number)
    if job is None:
        raise _unknown(number)
    return view(job)


def view(job: Job) -> JobView:
    """A job's row as it is shown."""
    return JobView(
        id=job.id,
        kind=job.kind,
        state=job.state,
        arguments=job.arguments,
        progress=job.progress,
        result=job.result,
        error=job.error,
        attempts=job.attempts,
        created_at=job.created_at,
        ended_at=job.ended_at,
    )


def _unknown(number: int) -> UsageError:
    return UsageError(
        f"there is no job {number}",
        code="unknown_job",
        hint="the answer to the request that asked for it told its number",
    )

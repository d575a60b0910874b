"""Background jobs over HTTP: asked for, then looked at until they end."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Request
from pydantic import Field
from starlette.responses import Response

from envsdk.frozen import Frozen
from registry.api.answer import answered, done
from registry.api.guard import MAX_NUMBER, Guard
from registry.jobs import cancel, enqueue, find_job
from registry.local import LocalRegistry

Number = Annotated[int, Path(ge=1, le=MAX_NUMBER)]


class JobBody(Frozen):
    """What to do: ``calibrate`` {q, policy} or ``refresh`` {set, policy}."""

    kind: Literal["calibrate", "refresh"]
    arguments: dict[str, Any] = Field(default_factory=dict)


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The endpoints over an open registry."""
    router = APIRouter()

    @router.post("/jobs", status_code=202, dependencies=[guard.may("jobs")])
    def ask(body: JobBody, idempotency_key: Annotated[str | None, Header(max_length=128)] = None) -> Response:
        """Ask for a job; the same ``Idempotency-Key`` again is the same job."""
        with registry.database.writing() as session:
            job = enqueue(session, body.kind, body.arguments, idempotency_key=idempotency_key)
        return done(status=202, job=asdict(job))

    @router.get("/jobs/{number}")
    def look(request: Request, number: Number) -> Response:
        """How a job stands."""
        with registry.database.reading() as session:
            job = find_job(session, number)
        return answered(request, job=asdict(job))

    @router.delete("/jobs/{number}", dependencies=[guard.may("jobs", bounded=False)])
    def stop(number: Number) -> Response:
        """Cancel a job that has not ended; what it stored stays."""
        with registry.database.writing() as session:
            job = cancel(session, number)
        return done(job=asdict(job))

    return router

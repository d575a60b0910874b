"""Task sets over HTTP: pin a query, read a revision."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from envsdk.frozen import Frozen
from registry.api.answer import answered, done
from registry.api.guard import Guard
from registry.local import LocalRegistry
from registry.query.saved import save_query


class PinBody(Frozen):
    """A query to pin; without a name the set is named by its digest."""

    q: str = Field(max_length=2_000)
    name: str = Field(default="", max_length=100)


class SaveBody(Frozen):
    """A query to keep under a name."""

    name: str = Field(min_length=1, max_length=100)
    q: str = Field(max_length=2_000)


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The endpoints over an open registry."""
    router = APIRouter()

    @router.post("/sets", dependencies=[guard.may("sets")])
    def pin(body: PinBody) -> Response:
        """Pin a query to a revision; the latest one where nothing changed."""
        return done(set=asdict(registry.resolve(body.q, name=body.name)))

    @router.get("/sets/{reference}")
    def revision(request: Request, reference: str) -> Response:
        """The revision ``NAME`` (its latest), ``NAME@NUMBER`` or of a digest."""
        return answered(request, set=asdict(registry.revision(reference)))

    @router.post("/queries", dependencies=[guard.may("sets")])
    def save(body: SaveBody) -> Response:
        """Keep a query; ``saved:NAME`` stands for it from then on."""
        with registry.database.writing() as session:
            kept = save_query(session, body.name, body.q)
            return done(name=kept.name, query=kept.query)

    return router

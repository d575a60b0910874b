"""``POST /api/posteriors``: estimates of many tasks at once. It reads; the pairs would not fit a URL."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field, StringConstraints
from starlette.responses import Response

from envsdk.frozen import Frozen
from registry.api.answer import done
from registry.api.guard import Guard
from registry.local import LocalRegistry

HexDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class PairsBody(Frozen):
    """Pairs of task digest and verifier digest, and whose estimates; the reference's where empty."""

    pairs: list[tuple[HexDigest, HexDigest]] = Field(max_length=100_000)
    lineage: str = Field(default="", max_length=256)


def routes(registry: LocalRegistry, _guard: Guard) -> APIRouter:
    """The endpoint over an open registry."""
    router = APIRouter()

    @router.post("/posteriors")
    def posteriors(body: PairsBody) -> Response:
        """The posterior of each pair that is here."""
        found = registry.posteriors(body.pairs, lineage=body.lineage)
        return done(
            posteriors=[
                {"task_digest": pair[0], "verifier_digest": pair[1]} | asdict(posterior)
                for pair, posterior in found.items()
            ]
        )

    return router

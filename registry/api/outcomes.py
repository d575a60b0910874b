"""``POST /api/outcomes``: ended episodes as JSON lines, any number of them in one stream.

Each batch of lines is one transaction, acknowledged when all of the answer is: where the connection breaks, what was
stored stays, and sending everything again counts it as duplicate.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from envsdk.errors import UsageError
from registry.api.answer import done
from registry.api.guard import Guard
from registry.local import LocalRegistry
from registry.outcomes import BATCH, AppendResult, append_lines

MAX_LINE_BYTES = 64 << 20


def routes(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """The endpoint over an open registry."""
    router = APIRouter()

    @router.post("/outcomes", dependencies=[guard.may("outcomes", bounded=False)])
    async def append(
        request: Request,
        run: Annotated[str, Query(max_length=128)] = "",
        first: Annotated[int, Query(ge=1)] = 1,
    ) -> Response:
        """Append episodes. ``run`` names the run they belong to; ``first`` is the number of the first line sent."""
        result = AppendResult()
        async for lines in _batches(request):
            result += await run_in_threadpool(append_lines, registry.database, lines, run=run, first=first)
            first += len(lines)
        return done(
            accepted=result.accepted,
            duplicate=result.duplicate,
            rejected=[asdict(item) for item in result.rejected],
        )

    return router


async def _batches(request: Request) -> AsyncIterator[list[bytes]]:
    rest = b""
    batch: list[bytes] = []
    size = 0
    async for chunk in _chunks(request):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise UsageError(
                f"a line is longer than {MAX_LINE_BYTES >> 20} MiB",
                code="payload_too_large",
                hint="send one episode a line, each line ended",
            )
        batch += lines
        size += len(chunk)
        if len(batch) >= BATCH or size >= MAX_LINE_BYTES:
            yield batch
            batch, size = [], 0
    if rest:
        batch.append(rest)
    if batch:
        yield batch


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        # Nobody hears this answer, but the log tells it from a defect of the server.
        raise UsageError("the connection ended before the body did", code="cut_off", hint="send it again") from error

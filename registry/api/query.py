"""``GET /api/query``: a page of what a query finds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from registry.api.answer import answered
from registry.api.guard import Guard
from registry.local import LocalRegistry
from registry.query.page import MAX_PAGE_SIZE, PAGE_SIZE


def routes(registry: LocalRegistry, _guard: Guard) -> APIRouter:
    """The endpoint over an open registry."""
    router = APIRouter()

    @router.get("/query")
    def query(
        request: Request,
        q: Annotated[str, Query(max_length=2_000)] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)] = PAGE_SIZE,
        cursor: Annotated[str | None, Query(max_length=2_000)] = None,
        exact_total: bool = False,
    ) -> Response:
        """One page; ``next`` is the cursor of the following one, `null` at the end."""
        page = registry.query(q, limit=limit, cursor=cursor, exact_total=exact_total)
        items = [asdict(item) for item in page.items]
        return answered(request, items=items, next=page.next, total=page.total, more=page.more)

    return router

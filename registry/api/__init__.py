"""The JSON API under ``/api``: what `registry.client` speaks over HTTP.

Reading is open, unless the server is private; writing needs a bearer token with the scope of what it does. Writes
are idempotent: tasks by content, outcomes by episode id, sets by digest, jobs by the header ``Idempotency-Key``.
Answers are the envelope that commands print.
"""

from fastapi import APIRouter

from registry.api import estimates, jobs, outcomes, proposals, query, sets, tasks
from registry.api.guard import Guard
from registry.local import LocalRegistry


def api_router(registry: LocalRegistry, guard: Guard) -> APIRouter:
    """Every endpoint, over one open registry."""
    router = APIRouter(prefix="/api", tags=["api"])
    for part in (query, tasks, outcomes, sets, estimates, jobs, proposals):
        router.include_router(part.routes(registry, guard))
    return router

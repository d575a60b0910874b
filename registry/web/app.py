"""The web registry: pages, their JSON twins, static files, and the API beside them.

It never executes what it stores, and loads neither torch nor vllm; jobs run in a process of their own.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from envsdk.cli.envelope import success
from registry.api import api_router
from registry.api.guard import Guard
from registry.local import LocalRegistry
from registry.web import embeds, feed, listing, suggest
from registry.web.errors import add_error_pages
from registry.web.pages import (
    api,
    comparison,
    digest,
    episode,
    families,
    jobs,
    policies,
    proposal,
    refresh,
    revision,
    runs,
    sets,
    sign_in,
    task,
    tasks,
)
from registry.web.private import TokenToRead
from registry.web.security import SecurityHeaders
from registry.web.watch import Counts, Watched

_STATIC = Path(__file__).parent / "static"
# Order matters: ``/sets/{name}/badge.svg`` and ``/sets/{name}/diff`` are no revisions.
_READ = (suggest, embeds, feed, listing, comparison, tasks, task, digest, episode, revision, families, policies, runs)


def create_app(registry: LocalRegistry, *, read_only: bool = False, private: bool = False) -> FastAPI:
    """The application over an open registry; whoever opened it closes it.

    Args:
        registry: an open database.
        read_only: refuse every write.
        private: let nobody read without a token.
    """
    app = FastAPI(title="Task registry", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    counts = Counts()
    guard = Guard(registry)
    if private:
        app.add_middleware(TokenToRead, guard=guard)
    app.add_middleware(SecurityHeaders, read_only=read_only)
    app.add_middleware(Watched, counts=counts)  # the last added is the outermost
    add_error_pages(app)
    for page in _READ:
        app.include_router(page.routes(registry), tags=["pages"])
    app.include_router(sign_in.routes(guard, private=private), tags=["pages"])
    for form in (sets, refresh, proposal, jobs):
        app.include_router(form.routes(registry, guard), tags=["pages"])
    app.include_router(api_router(registry, guard))
    app.include_router(api.routes(app))
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")

    @app.get("/", include_in_schema=False)
    def home() -> Response:
        return RedirectResponse("/tasks", status_code=307)

    @app.get("/healthz", tags=["operations"])
    def health(request: Request) -> JSONResponse:
        """Whether the database answers."""
        del request
        with registry.database.reading() as session:
            session.connection().exec_driver_sql("SELECT 1")
        return JSONResponse(success(status="ready"))

    @app.get("/metrics", tags=["operations"])
    def metrics() -> Response:
        """Requests by route and status, and their times, as Prometheus reads them."""
        return Response(counts.text(), media_type="text/plain; version=0.0.4")

    return app

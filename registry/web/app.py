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
from registry.local import LocalRegistry
from registry.web.errors import add_error_pages
from registry.web.pages import episode, families, policies, refresh, runs, sets, task, tasks
from registry.web.security import SecurityHeaders

_STATIC = Path(__file__).parent / "static"


def create_app(registry: LocalRegistry) -> FastAPI:
    """The application over an open registry; whoever opened it closes it."""
    app = FastAPI(title="Task registry", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.add_middleware(SecurityHeaders)
    add_error_pages(app)
    for page in (tasks, task, episode, sets, families, policies, runs, refresh):
        app.include_router(page.routes(registry), tags=["pages"])
    app.include_router(api_router(registry))
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

    return app

"""One view, two faces: HTML by a template, JSON by the envelope.

A page is a function from a request to a frozen-ish ``dict`` of plain values. `add_page` serves it at ``PATH`` (HTML, or
JSON where the reader prefers it) and at ``PATH.json``; both hold the same content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from envsdk.cli.envelope import render as render_json
from envsdk.cli.envelope import success
from registry.web import charts
from registry.web.caching import REVALIDATE, with_etag
from registry.web.formats import FILTERS, estimate

View = Callable[[Request], Mapping[str, Any]]
NAVIGATION = (
    ("/tasks", "Tasks"),
    ("/sets", "Task sets"),
    ("/families", "Families"),
    ("/policies", "Policies"),
    ("/runs", "Runs"),
    ("/refresh", "Refresh"),
)


def templates() -> Environment:
    """The template environment: autoescaping, and an undefined name is an error, never an empty string."""
    environment = Environment(
        loader=PackageLoader("registry.web"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(charts=charts, estimate=estimate, navigation=NAVIGATION)
    return environment


_TEMPLATES = templates()


def html(request: Request, template: str, view: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
    """``view`` as a page. Every template knows the path, its JSON twin and the lineage that numbers are shown for."""
    path = request.url.path
    twin = f"{path}.json" + (f"?{request.url.query}" if request.url.query else "")
    context = {"request_path": path, "json_url": twin if status == 200 else "", "lineage": "", "title": "", **view}
    return HTMLResponse(_TEMPLATES.get_template(template).render(context), status_code=status)


def as_json(view: Mapping[str, Any], *, status: int = 200) -> Response:
    """``view`` in the envelope that every command and endpoint shares."""
    return Response(render_json(success(**view)), status_code=status, media_type="application/json")


def wants_json(request: Request) -> bool:
    """Whether the answer is to be JSON: by the path's ending, the API's paths, or a reader who prefers it to HTML."""
    path = request.url.path
    if path.endswith(".json") or path.startswith("/api/"):
        return True
    accept = request.headers.get("accept", "")
    if "application/json" not in accept:
        return False
    return "text/html" not in accept or accept.index("application/json") < accept.index("text/html")


def add_page(router: APIRouter, path: str, template: str, view: View, *, cache: str = REVALIDATE) -> None:
    """Serve ``view`` at ``path`` and ``path.json``. Views are plain functions: they run in a worker thread."""

    def json_twin(request: Request) -> Response:
        return with_etag(request, as_json(view(request)), cache=cache)

    def page(request: Request) -> Response:
        if wants_json(request):
            return json_twin(request)
        response = html(request, template, view(request))
        response.headers["Link"] = f'<{request.url.path}.json>; rel="alternate"; type="application/json"'
        return with_etag(request, response, cache=cache)

    # The twin first: ``/tasks/{name}`` would otherwise swallow ``/tasks/x.json``.
    router.add_api_route(f"{path}.json", json_twin, methods=["GET"], name=f"{template}:json")
    router.add_api_route(path, page, methods=["GET"], name=template, include_in_schema=False)

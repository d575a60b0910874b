"""One view, two faces: HTML by a template, JSON by the envelope.

A page is a function from a request to a frozen-ish ``dict`` of plain values. `add_page` serves it at ``PATH`` (HTML, or
JSON where the reader prefers it) and at ``PATH.json``; both hold the same content. Parameters that a page does not know
are refused in JSON and ignored in HTML, where links from elsewhere carry all sorts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from envsdk.cli.envelope import render as render_json
from envsdk.cli.envelope import success
from envsdk.errors import UsageError
from registry.query.errors import suggestion
from registry.web import charts, plots
from registry.web.caching import REVALIDATE, with_etag
from registry.web.formats import FILTERS, estimate, rate
from registry.web.reasons import because

View = Callable[[Request], Mapping[str, Any]]
_PLACE = re.compile(r"[0-9]{1,15}")
_IN_PATH = re.compile(r"\{(\w+)\}")
NAVIGATION = (
    ("/tasks", "Tasks"),
    ("/sets", "Task sets"),
    ("/families", "Families"),
    ("/policies", "Policies"),
    ("/runs", "Runs"),
    ("/refresh", "Refresh"),
    ("/jobs", "Jobs"),
)


class Moved(Exception):  # noqa: N818 - no error: the page has another address
    """The page that was asked for has the address ``path`` now."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def templates() -> Environment:
    """The template environment: autoescaping, and an undefined name is an error, never an empty string."""
    environment = Environment(
        loader=PackageLoader("registry.web"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(
        charts=charts,
        plots=plots,
        estimate=estimate,
        rate=rate,
        because=because,
        navigation=NAVIGATION,
        task_url=task_url,
        tasks_url=tasks_url,
    )
    return environment


def task_url(slug: str, task_digest: str, verifier_digest: str = "") -> str:
    """The page of one task under one verifier."""
    which = {"task": task_digest[:12]} | ({"verifier": verifier_digest[:12]} if verifier_digest else {})
    return f"/tasks/{quote(slug, safe='')}?{urlencode(which)}"


def tasks_url(q: str) -> str:
    """The list of what a query finds."""
    return f"/tasks?{urlencode({'q': q})}"


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


def add_page(
    router: APIRouter,
    path: str,
    template: str,
    view: View,
    *,
    parameters: Collection[str] = (),
    cache: str = REVALIDATE,
    modified: Callable[[Mapping[str, Any]], float] | None = None,
) -> None:
    """Serve ``view`` at ``path`` and ``path.json``. Views are plain functions: they run in a worker thread.

    Args:
        router: what the page is added to.
        path: of the page, with its parameters in braces.
        template: its HTML.
        view: makes its content; may raise `Moved`.
        parameters: what its query string may hold.
        cache: how long it may be kept.
        modified: when the content was made, Unix time; only of a page whose content never changes.
    """

    def json_twin(request: Request) -> Response:
        _check_parameters(request, parameters)
        try:
            seen = view(request)
        except Moved as moved:
            return _moved(moved, request, suffix=".json" if request.url.path.endswith(".json") else "")
        when = modified(seen) if modified else None
        return with_etag(request, as_json(seen), cache=cache, modified_at=when)

    def page(request: Request) -> Response:
        if wants_json(request):
            return json_twin(request)
        try:
            seen = view(request)
        except Moved as moved:
            return _moved(moved, request)
        # A query with a fault is told in its page, beside what was written; it is a bad request all the same.
        response = html(request, template, seen, status=400 if seen.get("fault") else 200)
        response.headers["Link"] = f'<{request.url.path}.json>; rel="alternate"; type="application/json"'
        return with_etag(request, response, cache=cache, modified_at=modified(seen) if modified else None)

    # The twin first: ``/tasks/{name}`` would otherwise swallow ``/tasks/x.json``.
    router.add_api_route(
        f"{path}.json",
        json_twin,
        methods=["GET"],
        name=f"{template}:json",
        description=f"The page `{path}` as JSON.",
        openapi_extra={"parameters": _described(path, parameters)},
    )
    router.add_api_route(path, page, methods=["GET"], name=template, include_in_schema=False)


def place_in_list(request: Request, name: str) -> int | None:
    """The number that the parameter ``name`` gives, after or before which a page of a list begins; `None` without it.

    Raises:
        UsageError: it is no number (``query_bad_cursor``).
    """
    given = request.query_params.get(name, "")
    if not given:
        return None
    if not _PLACE.fullmatch(given):
        raise UsageError(
            f"{given[:40]!r} is no place in this list",
            code="query_bad_cursor",
            hint="start again at the first page",
            where=name,
        )
    return int(given)


def _described(path: str, parameters: Collection[str]) -> list[dict[str, Any]]:
    """What the address may hold, for the description of the API: views read it from the request themselves."""
    text = {"type": "string"}
    places = [{"name": name, "in": "path", "required": True, "schema": text} for name in _IN_PATH.findall(path)]
    return places + [{"name": name, "in": "query", "required": False, "schema": text} for name in parameters]


def _check_parameters(request: Request, known: Collection[str]) -> None:
    for name in request.query_params:
        if name not in known:
            raise UsageError(
                f"this page has no parameter {name!r}",
                code="unknown_parameter",
                hint=suggestion(name, known) if known else "it takes none",
                where=name,
            )


def _moved(moved: Moved, request: Request, *, suffix: str = "") -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{moved.path}{suffix}{query}", status_code=301, headers={"Vary": "Accept"})

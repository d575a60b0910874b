"""Errors as pages and as envelopes: the same code, message and hint on both, and what to do next."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from envsdk.cli.envelope import failure
from envsdk.cli.envelope import render as render_json
from envsdk.errors import EnvsdkError, StoreError, UsageError
from registry.web.formats import sentence
from registry.web.render import html, wants_json
from registry.web.session import own_path

_STATUS_OF_CODE = {
    "no_such_task": 404,
    "no_such_set": 404,
    "no_such_revision": 404,
    "no_such_page": 404,
    "no_such_episode": 404,
    "no_such_run": 404,
    "no_such_family": 404,
    "no_such_policy": 404,
    "not_measured": 404,
    "unknown_digest": 404,
    "unknown_task": 404,
    "unknown_set": 404,
    "unknown_job": 404,
    "unknown_proposal": 404,
    "closed_proposal": 409,
    "stale_proposal": 409,
    "deleted_revision": 410,
    "length_required": 411,
    "token_required": 401,
    "token_scope": 403,
    "read_only": 403,
    "cross_site": 403,
    "rate_limited": 429,
    "payload_too_large": 413,
    "conflict": 409,
}


def status_of(error: EnvsdkError) -> int:
    """The HTTP status of an error: by its code, else 400 for the caller's mistakes and 503 for ours."""
    if error.code in _STATUS_OF_CODE:
        return _STATUS_OF_CODE[error.code]
    if isinstance(error, UsageError):
        return 400
    return 503 if isinstance(error, StoreError) else 500


def respond(request: Request, error: EnvsdkError, *, status: int | None = None) -> Response:
    """``error`` as the reader wants it."""
    status = status_of(error) if status is None else status
    if wants_json(request):
        return Response(render_json(failure(error)), status_code=status, media_type="application/json")
    back = own_path(urlsplit(request.headers.get("referer", "")).path) if request.method == "POST" else ""
    view = {
        "title": sentence(error.message),
        "error": error,
        "status": status,
        "request_id": getattr(request.state, "request_id", ""),
        "back": back,
    }
    return html(request, "error.html", view, status=status)


def add_error_pages(app: FastAPI) -> None:
    """Install the handlers for our own errors and for routes that don't exist."""

    @app.exception_handler(EnvsdkError)
    def ours(request: Request, error: EnvsdkError) -> Response:
        return respond(request, error)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        del request
        faults = [
            UsageError(
                str(fault["msg"]),
                code="invalid_request",
                hint="/api says what each address takes",
                where=".".join(str(part) for part in fault["loc"]),
            )
            for fault in error.errors()
        ]
        return Response(render_json(failure(*faults)), status_code=422, media_type="application/json")

    @app.exception_handler(HTTPException)
    def theirs(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            known = UsageError(f"no page {request.url.path}", code="no_such_page", hint="start from /tasks")
            return respond(request, known)
        other = UsageError(str(error.detail), code=f"http_{error.status_code}")
        response = respond(request, other, status=error.status_code)
        response.headers.update(error.headers or {})
        return response

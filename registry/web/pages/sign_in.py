"""Signing in with a token, and out again."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from envsdk.errors import UsageError
from registry.api.guard import Guard, host_of
from registry.tokens import SCOPES
from registry.web.forms import must_be_ours, read_fields
from registry.web.render import html
from registry.web.session import forget_token, keep_token, own_path, token_of

_WHAT = {
    "push": "store tasks and check reports",
    "outcomes": "send episodes",
    "sets": "pin sets, publish and dismiss refreshes",
    "jobs": "start and cancel calibrations and refreshes",
    "read": "read, where that needs a token",
}


def routes(guard: Guard, *, private: bool) -> APIRouter:
    """The page and its two forms; ``private``: reading needs a token too. Nothing of it is kept by caches."""
    router = APIRouter()

    def shown(request: Request, *, fault: UsageError | None = None, status: int = 200) -> Response:
        secret = token_of(request)
        host = host_of(request)
        scopes: tuple[str, ...] | None = None
        if secret and fault is None:
            try:
                scopes = guard.holder(host, secret).scopes
            except UsageError as error:
                fault = error
        view = {
            "title": "Sign in",
            "scopes": scopes,
            "known": [(scope, _WHAT[scope]) for scope in SCOPES],
            "fault": fault,
            "private": private,
            "next": own_path(request.query_params.get("next", "")),
            "asked": "next" in request.query_params,
        }
        response = html(request, "sign_in.html", view | {"json_url": ""}, status=status)
        response.headers["Cache-Control"] = "no-store"
        return response

    @router.get("/sign-in", include_in_schema=False)
    def page(request: Request) -> Response:
        return shown(request)

    @router.post("/sign-in", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        must_be_ours(request)
        fields = await read_fields(request)
        secret = fields.get("token", "").strip()
        try:
            await run_in_threadpool(guard.holder, host_of(request), secret)
        except UsageError as error:
            return await run_in_threadpool(shown, request, fault=error, status=401)
        response = RedirectResponse(own_path(fields.get("next", "")), status_code=303)
        keep_token(request, response, secret)
        return response

    @router.post("/sign-out", include_in_schema=False)
    def sign_out(request: Request) -> Response:
        must_be_ours(request)
        response = RedirectResponse("/sign-in", status_code=303)
        forget_token(response)
        return response

    return router

"""A registry that nobody reads without a token: any good one reads, whatever its scopes.

Open stay what asks for one (signing in), what pages are drawn with, and whether the server is alive. A reader without
a token is led to signing in and back; a program is told 401. What a private registry answers, no shared cache keeps.
"""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from envsdk.errors import EnvsdkError, UsageError
from registry.api.guard import Guard, host_of
from registry.web.errors import respond
from registry.web.render import wants_json
from registry.web.session import token_of

_OPEN = frozenset({"/healthz", "/sign-in", "/sign-out"})
_DRAWN_WITH = "/static/"


class TokenToRead:
    """ASGI middleware: every request needs a good token, in a header or in the browser's cookie."""

    def __init__(self, app: ASGIApp, *, guard: Guard) -> None:
        self.app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN or scope["path"].startswith(_DRAWN_WITH):
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        secret = _bearer(request) or token_of(request)
        try:
            if not secret:
                raise UsageError(
                    "reading this registry needs a token",
                    code="token_required",
                    hint="send `Authorization: Bearer TOKEN`; `envsdk registry token create` makes one",
                )
            await run_in_threadpool(self._guard.holder, host_of(request), secret)
        except EnvsdkError as error:
            await _refusal(request, error)(scope, receive, send)
            return

        async def send_private(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                kept = headers.get("cache-control", "")
                headers["cache-control"] = (
                    kept.replace("public", "private") if "public" in kept else "private, no-cache"
                )
            await send(message)

        await self.app(scope, receive, send_private)


def _bearer(request: Request) -> str:
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def _refusal(request: Request, error: EnvsdkError) -> Response:
    if error.code != "token_required":
        return respond(request, error)
    if request.method == "GET" and not wants_json(request):
        page = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        return RedirectResponse(f"/sign-in?{urlencode({'next': page})}", status_code=303)
    response = respond(request, error)
    response.headers["WWW-Authenticate"] = "Bearer"
    return response

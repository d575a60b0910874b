"""What every answer carries, and who may change something.

Nothing is loaded from other hosts (CSP), no page may be framed, and a browser's write must come from this site
(``Sec-Fetch-Site``, else ``Origin`` against ``Host``), so that no cookie can be ridden. A read-only site refuses every
write before anything looks at it.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from envsdk.errors import UsageError
from registry.web.errors import respond

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
_SAFE = {"GET", "HEAD", "OPTIONS"}
_READS = {"/api/posteriors"}
"""Asked with POST because what they ask for fits no URL."""


class SecurityHeaders:
    """ASGI middleware: headers on every answer, refusal of cross-site writes."""

    def __init__(self, app: ASGIApp, *, read_only: bool = False) -> None:
        self.app = app
        self._read_only = read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refused = self._refused(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", POLICY)
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "same-origin"
            await send(message)

        if refused is not None:
            await respond(Request(scope), refused)(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def _refused(self, scope: Scope) -> UsageError | None:
        if scope["method"] in _SAFE:
            return None
        if self._read_only and scope["path"] not in _READS:
            return UsageError(
                "this registry is read-only here", code="read_only", hint="write where it is served without --read-only"
            )
        if cross_site(Headers(scope=scope)):
            return UsageError(
                "a write from another site was refused", code="cross_site", hint="use the site's own forms"
            )
        return None


def cross_site(headers: Headers) -> bool:
    """Whether a browser says that the request comes from another site; programs send neither header."""
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site not in {"same-origin", "none"}
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")

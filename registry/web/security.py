"""What every answer carries, and who may change something.

Nothing is loaded from other hosts (CSP), no page may be framed, and a browser's write must come from this site
(``Sec-Fetch-Site``, else ``Origin`` against ``Host``): a token in a header is needed besides, so no cookie can be
ridden.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from envsdk.cli.envelope import failure
from envsdk.errors import UsageError

POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
_SAFE = {"GET", "HEAD", "OPTIONS"}


class SecurityHeaders:
    """ASGI middleware: headers on every answer, refusal of cross-site writes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] not in _SAFE and cross_site(Headers(scope=scope)):
            error = UsageError(
                "a write from another site was refused", code="cross_site", hint="use the site's own forms"
            )
            await JSONResponse(failure(error), status_code=403)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", POLICY)
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "same-origin"
            await send(message)

        await self.app(scope, receive, send_with_headers)


def cross_site(headers: Headers) -> bool:
    """Whether a browser says that the request comes from another site; programs send neither header."""
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site not in {"same-origin", "none"}
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")

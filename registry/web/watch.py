"""What an operator sees: an id for every request, one log line, counts for Prometheus, and defects as pages.

The id is the caller's ``X-Request-ID`` where it is well formed, else a new one; it stands in the answer, in the log and
on the error page, so that a reader's complaint leads to the line in the log.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import MutableMapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from envsdk.errors import StoreError
from registry.web.errors import respond

HEADER = "x-request-id"
_LOG = logging.getLogger("registry.web")
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Counts:
    """Requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._known = CollectorRegistry()
        self._requests = Counter(
            "registry_requests_total", "Requests answered.", ("method", "route", "status"), registry=self._known
        )
        self._seconds = Histogram("registry_request_seconds", "Time to answer.", ("route",), registry=self._known)

    def add(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one answer, by the pattern of its path: paths themselves are without bound."""
        route = getattr(scope.get("route"), "path", "none")
        self._requests.labels(scope["method"], route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._known)


class Watched:
    """ASGI middleware around all others."""

    def __init__(self, app: ASGIApp, *, counts: Counts) -> None:
        self.app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["request_id"] = given if _GIVEN.fullmatch(given) else secrets.token_hex(6)
        began = time.monotonic()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = state["request_id"]
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except Exception:  # a defect anywhere below: the reader gets a page and an id, the log gets the trace
            _LOG.exception("request %s: %s %s failed", state["request_id"], scope["method"], scope["path"])
            if status:
                raise
            error = StoreError(
                "the registry has a defect here", code="internal_error", hint="tell its operator the request's id"
            )
            await respond(Request(scope), error, status=500)(scope, receive, send_with_id)
        finally:
            seconds = time.monotonic() - began
            self._counts.add(scope, status, seconds)
            _LOG.info(
                "%s %s %s %d %.1f ms", state["request_id"], scope["method"], scope["path"], status, 1000 * seconds
            )

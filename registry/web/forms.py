"""Writes from pages: plain forms, answered with a redirect to what they made.

A form needs the token that the reader signed in with, its scope, and the browser's word that it was sent from this
site. Programs have no use for forms: the API takes their token in a header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from envsdk.errors import UsageError
from registry.api.guard import Guard, host_of
from registry.tokens import Holder
from registry.web.session import own_path, token_of

MAX_BYTES = 64 << 10
_API = "use the site's own forms; programs use the API (/api)"


@dataclass(frozen=True, slots=True)
class Sent:
    """A form that may be acted on: its request, its fields, and whose token it came with."""

    request: Request
    fields: Mapping[str, str]
    holder: Holder


Act = Callable[[Sent], str]


def add_form(router: APIRouter, path: str, guard: Guard, *, scope: str, act: Act) -> None:
    """Serve ``POST path``: ``act`` does it, in a worker thread, and returns the path to go to."""

    async def submit(request: Request) -> Response:
        must_be_ours(request)
        secret = token_of(request)
        if not secret:
            return RedirectResponse(f"/sign-in?{urlencode({'next': came_from(request)})}", status_code=303)
        holder = await run_in_threadpool(guard.admit, host_of(request), secret, scope)
        sent = Sent(request, await read_fields(request), holder)
        return RedirectResponse(await run_in_threadpool(act, sent), status_code=303)

    router.add_api_route(path, submit, methods=["POST"], include_in_schema=False)


def must_be_ours(request: Request) -> None:
    """Refuse a form without a browser's word that this site sent it.

    Raises:
        UsageError: neither ``Sec-Fetch-Site`` nor ``Origin`` says so (``cross_site``).
    """
    # What these headers say is judged for every write in `registry.web.security`; a cookie needs them to be there.
    if "sec-fetch-site" not in request.headers and "origin" not in request.headers:
        raise UsageError("a form was sent by no page of this site", code="cross_site", hint="programs use the API")


async def read_fields(request: Request) -> dict[str, str]:
    """The fields of a form, the last value of each.

    Raises:
        UsageError: it is too large, or no form.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise UsageError(f"a form is larger than {MAX_BYTES >> 10} KiB", code="payload_too_large", hint=_API)
    if body and request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise UsageError("the body is no form", code="bad_form", hint=_API)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    except ValueError as error:
        raise UsageError("the form's text is not UTF-8", code="bad_form", hint=_API) from error


def came_from(request: Request) -> str:
    """The page of this site that holds the form."""
    page = urlsplit(request.headers.get("referer", ""))
    return own_path(f"{page.path}?{page.query}" if page.query else page.path)

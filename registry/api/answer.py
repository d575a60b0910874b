"""Answers in the one envelope, with an ETag."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from envsdk.cli.envelope import render, success
from registry.web.caching import REVALIDATE, with_etag


def answered(request: Request, *, cache: str = REVALIDATE, **result: Any) -> Response:
    """A result that may be asked again: 304 where the reader has it already."""
    return with_etag(request, done(**result), cache=cache)


def done(*, status: int = 200, **result: Any) -> Response:
    """The result of a write."""
    return Response(render(success(**result)), status_code=status, media_type="application/json")

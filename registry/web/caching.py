"""ETags: a page that did not change is not sent again.

The tag is a hash of the body, so HTML and its JSON twin never share one; ``Vary`` says what the choice depended on.
``Last-Modified`` stands only where the content never changes: elsewhere it could not be told from the body's parts.
"""

from __future__ import annotations

import hashlib
from email.utils import formatdate, parsedate_to_datetime

from starlette.requests import Request
from starlette.responses import Response

IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATE = "no-cache"


def with_etag(
    request: Request, response: Response, *, cache: str = REVALIDATE, modified_at: float | None = None
) -> Response:
    """``response`` with an ETag, or an empty 304 where the reader has it already."""
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:24]}"'
    headers = {"ETag": tag, "Vary": "Accept", "Cache-Control": cache}
    if modified_at is not None:
        headers["Last-Modified"] = formatdate(modified_at, usegmt=True)
    if response.status_code == 200 and _has_it(request, tag, modified_at):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return response


def _has_it(request: Request, tag: str, modified_at: float | None) -> bool:
    given = request.headers.get("if-none-match")
    if given is not None:
        known = {part.strip().removeprefix("W/") for part in given.split(",")}
        return tag in known or "*" in known
    since = request.headers.get("if-modified-since")
    if since is None or modified_at is None:
        return False
    try:
        return int(modified_at) <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False

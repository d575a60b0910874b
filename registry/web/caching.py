"""ETags: a page that did not change is not sent again.

The tag is a hash of the body, so HTML and its JSON twin never share one; ``Vary`` says what the choice depended on.
"""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import Response

IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATE = "no-cache"


def with_etag(request: Request, response: Response, *, cache: str = REVALIDATE) -> Response:
    """``response`` with an ETag, or an empty 304 where the reader has it already."""
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:24]}"'
    known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
    if response.status_code == 200 and (tag in known or "*" in known):
        return Response(status_code=304, headers={"ETag": tag, "Vary": "Accept", "Cache-Control": cache})
    response.headers["ETag"] = tag
    response.headers["Vary"] = "Accept"
    response.headers["Cache-Control"] = cache
    return response

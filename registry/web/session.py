"""Signing in with a token: a browser keeps it in a cookie that no script can read and no other site can send.

There are no accounts: a token's scopes say what its holder may do, and revoking it ends every session with it.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

COOKIE = "registry_token"
_YEAR_S = 365 * 86_400


def token_of(request: Request) -> str:
    """The token that the browser keeps, or nothing."""
    return request.cookies.get(COOKIE, "")


def keep_token(request: Request, response: Response, secret: str) -> None:
    """Let the browser keep ``secret``; over https only where it came that way."""
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, secret, max_age=_YEAR_S, httponly=True, samesite="strict", secure=secure)


def forget_token(response: Response) -> None:
    """Let the browser forget its token."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def own_path(wanted: str) -> str:
    """``wanted`` where it is a path of this site, else the first page: no link may lead a reader away from here."""
    inside = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if inside else "/tasks"

"""Who may read and write, how often, and how much at once."""

from __future__ import annotations

import time
from collections.abc import Callable

from fastapi import Depends, Request, Security
from fastapi.params import Depends as DependsOn
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from envsdk.errors import UsageError
from registry.local import LocalRegistry
from registry.tokens import Holder, holder_of

WRITES_A_MINUTE = 600
FAILURES_A_MINUTE = 30
MAX_BODY_BYTES = 64 << 20
_JITTER_S = 1.0
"""A clock that is kept in step goes back by less."""
MAX_NUMBER = 2**53
"""Numbers of rows in a path; larger ones are no row of either database."""
_BEARER = HTTPBearer(auto_error=False, description="A token of `envsdk registry token create`.")


class Guard:
    """Checks of writes; one for an application, since it counts."""

    def __init__(self, registry: LocalRegistry) -> None:
        self._registry = registry
        self._counted = MemoryStorage()
        self._limiter = MovingWindowRateLimiter(self._counted)
        self._latest = time.time()

    def may(self, scope: str, *, bounded: bool = True) -> DependsOn:
        """A dependency that lets a request through whose token has ``scope``; its value is the token's `Holder`.

        ``bounded``: the body must be announced, and at most 64 MiB; streams are bounded by who reads them.
        """

        def check(
            request: Request,
            credentials: HTTPAuthorizationCredentials | None = Security(_BEARER),  # noqa: B008
        ) -> Holder:
            if credentials is None:
                raise UsageError(
                    "writing needs a token",
                    code="token_required",
                    hint="send `Authorization: Bearer TOKEN`; `envsdk registry token create` makes one",
                )
            holder = self.admit(host_of(request), credentials.credentials, scope)
            if bounded:
                _check_size(request)
            return holder

        checked: Callable[..., Holder] = check
        dependency: DependsOn = Depends(checked)
        return dependency

    def admit(self, host: str, secret: str, scope: str) -> Holder:
        """Let a token of ``host`` do what ``scope`` names, and count it; whose it is.

        Raises:
            UsageError: the token is not good (``token_required``), lacks the scope (``token_scope``), or asks too
                often (``rate_limited``).
        """
        holder = self.holder(host, secret)
        if scope not in holder.scopes:
            raise UsageError(
                f"the token lacks the scope {scope!r}", code="token_scope", hint=f"it has: {', '.join(holder.scopes)}"
            )
        if not self._limiter.hit(RateLimitItemPerMinute(WRITES_A_MINUTE), "writes", secret):
            raise _too_many()
        return holder

    def holder(self, host: str, secret: str) -> Holder:
        """Whose token it is. Raises as `admit` does; wrong guesses of a host are counted and bounded."""
        self._follow_the_clock()
        if not self._limiter.test(RateLimitItemPerMinute(FAILURES_A_MINUTE), "failures", host):
            raise _too_many()
        with self._registry.database.reading() as session:
            holder = holder_of(session, secret)
        if holder is None:
            self._limiter.hit(RateLimitItemPerMinute(FAILURES_A_MINUTE), "failures", host)
            raise UsageError(
                "the token is unknown, expired or revoked",
                code="token_required",
                hint="`envsdk registry token create` makes one",
            )
        return holder

    def _follow_the_clock(self) -> None:
        """Count anew where the clock ran back: what was counted would fill each minute until it is there again."""
        now, before = time.time(), self._latest
        self._latest = now
        if now < before - _JITTER_S:
            self._counted.reset()


def host_of(request: Request) -> str:
    """Where a request comes from, for counting wrong guesses."""
    return request.client.host if request.client else "unknown"


def _too_many() -> UsageError:
    return UsageError("too many requests", code="rate_limited", hint="wait a minute; send outcomes in larger batches")


def _check_size(request: Request) -> None:
    announced = request.headers.get("content-length", "")
    if not announced.isdigit():
        raise UsageError(
            "the length of the body is not announced", code="length_required", hint="send a Content-Length"
        )
    if int(announced) > MAX_BODY_BYTES:
        raise UsageError(
            f"the body is larger than {MAX_BODY_BYTES >> 20} MiB", code="payload_too_large", hint="send it in parts"
        )

"""Bearer tokens with scopes: shown once, kept as a hash, compared in constant time.

256 random bits need no slow hash. Scopes: ``push`` (tasks and reports), ``outcomes``, ``sets`` (pin, refresh, saved
queries), ``jobs``; ``read`` lets its holder change nothing. Any token reads where reading needs one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from envsdk.errors import UsageError
from registry.db import Token
from registry.query.errors import suggestion

SCOPES = ("push", "outcomes", "sets", "jobs", "read")
_PREFIX = 12


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made; ``secret`` is kept nowhere."""

    secret: str
    prefix: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """Whoever shows a good token, and what it may do."""

    name: str
    prefix: str
    scopes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token as it may be shown. ``state``: active, expired or revoked."""

    name: str
    prefix: str
    scopes: tuple[str, ...]
    state: str
    created_at: float
    expires_at: float | None


def create_token(session: Session, name: str, *, scopes: Sequence[str], days: float | None = None) -> NewToken:
    """Make a token.

    Raises:
        UsageError: no such scope (``bad_scope``).
    """
    for scope in scopes:
        if scope not in SCOPES:
            raise UsageError(f"there is no scope {scope!r}", code="bad_scope", hint=suggestion(scope, SCOPES))
    secret = f"reg_{secrets.token_hex(32)}"
    now = time.time()
    session.add(
        Token(
            name=name,
            prefix=secret[:_PREFIX],
            digest=_digest(secret),
            scopes=" ".join(sorted(set(scopes))),
            created_at=now,
            expires_at=None if days is None else now + days * 86_400,
        )
    )
    return NewToken(secret, secret[:_PREFIX], tuple(sorted(set(scopes))))


def holder_of(session: Session, secret: str) -> Holder | None:
    """Whose token it is; `None` where it is unknown, expired or revoked."""
    digest = _digest(secret)
    now = time.time()
    for row in session.scalars(select(Token).where(Token.prefix == secret[:_PREFIX])):
        if hmac.compare_digest(row.digest, digest) and _state(row, now) == "active":
            return Holder(row.name, row.prefix, tuple(row.scopes.split()))
    return None


def list_tokens(session: Session) -> list[TokenInfo]:
    """Every token, oldest first."""
    now = time.time()
    return [
        TokenInfo(
            name=row.name,
            prefix=row.prefix,
            scopes=tuple(row.scopes.split()),
            state=_state(row, now),
            created_at=row.created_at,
            expires_at=row.expires_at,
        )
        for row in session.scalars(select(Token).order_by(Token.id))
    ]


def revoke_token(session: Session, prefix: str) -> None:
    """Revoke a token; it cannot be brought back.

    Raises:
        UsageError: there is none (``unknown_token``).
    """
    found = session.scalar(select(Token).where(Token.prefix == prefix))
    if found is None:
        raise UsageError(f"there is no token {prefix!r}", code="unknown_token", hint="`envsdk registry token list`")
    found.revoked_at = time.time()


def _state(row: Token, now: float) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= now else "active"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

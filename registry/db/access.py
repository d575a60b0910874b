"""Who may write, and what is being worked on: tokens, and jobs with leases."""

from __future__ import annotations

from sqlalchemy import Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db.base import Base, Digest, Id, JsonObject, UnixTime


class Token(Base):
    """A bearer token: shown once, kept as the sha256 of its 256 random bits. ``scopes`` are words split by spaces."""

    __tablename__ = "token"
    __table_args__ = (UniqueConstraint("digest"),)

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(String(128))
    prefix: Mapped[str] = mapped_column(String(16))
    digest: Mapped[Digest]
    scopes: Mapped[str] = mapped_column(String(128))
    created_at: Mapped[UnixTime]
    expires_at: Mapped[float | None]
    revoked_at: Mapped[float | None]


class Job(Base):
    """Background work. A worker holds a lease and renews it; work whose lease ran out is taken up again.

    ``state``: queued, running, done, failed, cancelled. ``idempotency_key`` makes the same request one job.
    """

    __tablename__ = "job"
    __table_args__ = (UniqueConstraint("idempotency_key"), Index(None, "state", "id"))

    id: Mapped[Id]
    kind: Mapped[str] = mapped_column(String(32))
    state: Mapped[str] = mapped_column(String(12), default="queued")
    idempotency_key: Mapped[str | None] = mapped_column(String(128))
    arguments: Mapped[JsonObject]
    progress: Mapped[JsonObject]
    result: Mapped[JsonObject]
    error: Mapped[str] = mapped_column(Text, default="")
    attempts: Mapped[int] = mapped_column(default=0)
    lease_owner: Mapped[str] = mapped_column(String(128), default="")
    lease_until: Mapped[float] = mapped_column(default=0.0)
    created_at: Mapped[UnixTime]
    ended_at: Mapped[float | None]

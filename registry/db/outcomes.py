"""What episodes came to: append-only, one row an episode, and the whole record beside it.

``outcome`` is narrow, because everything derived is folded from it; ``episode`` keeps the record that the viewer
shows. The idempotency key of both is the episode's id: the same episode sent twice is counted once.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db.base import Base, BigId, Id, JsonObject, UnixTime


class Policy(Base):
    """Model + revision + engine + precision + sampling. ``key`` is the sha256 of its canonical JSON."""

    __tablename__ = "policy"
    __table_args__ = (UniqueConstraint("key"),)

    id: Mapped[Id]
    key: Mapped[str] = mapped_column(String(64))
    lineage_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("lineage.id"))
    model: Mapped[str] = mapped_column(String(256))
    identity: Mapped[JsonObject]


class Run(Base):
    """A training or calibration run that sent outcomes.

    How many of each class, how many graded, and the sum of the graded ones' rewards are derived
    (`registry.derive.tallies`).
    """

    __tablename__ = "run"
    __table_args__ = (UniqueConstraint("name"),)

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(String(128))
    created_at: Mapped[UnixTime]
    successes: Mapped[int] = mapped_column(BigId, default=0)
    failures: Mapped[int] = mapped_column(BigId, default=0)
    infra_failures: Mapped[int] = mapped_column(BigId, default=0)
    unknown: Mapped[int] = mapped_column(BigId, default=0)
    graded: Mapped[int] = mapped_column(BigId, default=0)
    reward_sum: Mapped[float] = mapped_column(default=0.0)


class Outcome(Base):
    """How one episode ended. ``passed`` is `None` where it was not graded: absent, never 0 (law 1).

    ``lineage_id`` is `None` for agents that are no policy (oracle, noop): they are evidence on the verifier, not on
    difficulty. ``id`` is given by whoever holds the write lock, without gaps: outcomes are folded in its order.
    """

    __tablename__ = "outcome"
    __table_args__ = (
        UniqueConstraint("episode_id"),
        Index(None, "item_id", "lineage_id", "id"),
        Index(None, "run_id", "id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    episode_id: Mapped[str] = mapped_column(String(128))
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"))
    policy_id: Mapped[int] = mapped_column(BigId, ForeignKey("policy.id"))
    lineage_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("lineage.id"))
    weight_version: Mapped[int]
    outcome_class: Mapped[str] = mapped_column(String(16))
    cause: Mapped[str] = mapped_column(String(32))
    passed: Mapped[bool | None]
    reward: Mapped[float | None]
    group_id: Mapped[str] = mapped_column(String(128), default="")
    seconds: Mapped[float | None]
    tokens: Mapped[int | None]
    started_at: Mapped[UnixTime]
    run_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("run.id"))


class OutcomeRow(NamedTuple):
    """A row of `Outcome` that is about to be inserted, its values in the order of `_fields`."""

    id: int
    episode_id: str
    item_id: int
    policy_id: int
    lineage_id: int | None
    weight_version: int
    outcome_class: str
    cause: str
    passed: bool | None
    reward: float | None
    group_id: str
    seconds: float | None
    tokens: int | None
    started_at: float
    run_id: int | None


class Episode(Base):
    """The whole record of an episode, as `registry.outcomes.packed` stores it."""

    __tablename__ = "episode"

    episode_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    record: Mapped[bytes] = mapped_column(LargeBinary)

"""What is derived from outcomes: the standing of every item for every policy lineage, and the index that queries walk.

Every item has one standing per lineage, from its push on: a task that a lineage never met stands there as ``draft`` or
``checked``. All of it can be deleted and folded again from outcomes, reports, priors and retirements.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Float, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db.base import Base, BigId, Id, JsonObject, UnixTime


class Lineage(Base):
    """A model and what was trained from it. The first one measured becomes the reference that pages show.

    ``episodes`` and ``graded`` count its outcomes; ``newest_version`` and ``last_at`` are the largest weight version
    and starting time among them. All four are derived (`registry.derive.tallies`).
    """

    __tablename__ = "lineage"
    __table_args__ = (UniqueConstraint("name"),)

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(String(256))
    is_reference: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[UnixTime]
    episodes: Mapped[int] = mapped_column(BigId, default=0)
    graded: Mapped[int] = mapped_column(BigId, default=0)
    newest_version: Mapped[int | None]
    last_at: Mapped[float | None]


class Standing(Base):
    """One item's estimate and state for one lineage.

    Attributes:
        prior_alpha, prior_beta: the prior in force; ``K``, ``N`` are decayed counts, ``k``, ``n`` raw ones.
        ungraded: outcomes without a grade; coverage is n / (n + ungraded).
        weight_version: the newest version folded in, on the lineage's own count (`VersionCount`); versions only ever
            decay forwards.
        e_value: evidence for saturation since the posterior last entered ``saturating``.
        cusum: evidence against it since ``saturated``.
        folded_to: id of the last outcome folded in.
        mean, low, high: posterior mean and equal-tailed 90 % interval. learnability: E[p(1-p)].
    """

    __tablename__ = "standing"
    __table_args__ = (
        Index("ix_standing_by_status", "lineage_id", "status", "learnability", "item_id", "mean"),
        Index("ix_standing_by_learnability", "lineage_id", "learnability", "item_id", "mean"),
        Index("ix_standing_by_mean", "lineage_id", "mean", "item_id"),
        Index(None, "item_id"),
    )

    lineage_id: Mapped[int] = mapped_column(BigId, ForeignKey("lineage.id"), primary_key=True)
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"), primary_key=True)
    status: Mapped[str] = mapped_column(String(12), default="draft")
    phase: Mapped[str] = mapped_column(String(12), default="checked")
    mean: Mapped[float] = mapped_column(Float)
    low: Mapped[float] = mapped_column(Float)
    high: Mapped[float] = mapped_column(Float)
    learnability: Mapped[float] = mapped_column(Float)
    n: Mapped[int] = mapped_column(default=0)
    k: Mapped[int] = mapped_column(default=0)
    ungraded: Mapped[int] = mapped_column(default=0)
    prior_alpha: Mapped[float] = mapped_column(Float)
    prior_beta: Mapped[float] = mapped_column(Float)
    decayed_n: Mapped[float] = mapped_column(Float, default=0.0)
    decayed_k: Mapped[float] = mapped_column(Float, default=0.0)
    weight_version: Mapped[int | None]
    e_value: Mapped[float] = mapped_column(Float, default=1.0)
    cusum: Mapped[float] = mapped_column(Float, default=0.0)
    folded_to: Mapped[int] = mapped_column(BigId, default=0)
    updated_at: Mapped[UnixTime]


class VersionCount(Base):
    """Where a run's weight versions lie on its lineage's own count of updates (`registry.derive.versions`).

    ``run_id`` is 0 for outcomes of no run. ``shift`` is added to a version; ``newest`` is the largest sum so far.
    """

    __tablename__ = "version_count"

    lineage_id: Mapped[int] = mapped_column(BigId, ForeignKey("lineage.id"), primary_key=True)
    run_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    shift: Mapped[int]
    newest: Mapped[int]


class StandingTag(Base):
    """A standing copied under each tag of its item: the rows that a query walks in order, without a join."""

    __tablename__ = "standing_tag"
    __table_args__ = (
        Index("ix_standing_tag_by_status", "lineage_id", "tag_id", "status", "learnability", "item_id", "mean"),
        Index("ix_standing_tag_by_learnability", "lineage_id", "tag_id", "learnability", "item_id", "mean"),
    )

    lineage_id: Mapped[int] = mapped_column(BigId, ForeignKey("lineage.id"), primary_key=True)
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"), primary_key=True)
    tag_id: Mapped[int] = mapped_column(BigId, ForeignKey("tag.id"), primary_key=True)
    status: Mapped[str] = mapped_column(String(12))
    learnability: Mapped[float] = mapped_column(Float)
    mean: Mapped[float] = mapped_column(Float)


class PriorRow(Base):
    """A prior given to an item for a lineage by a calibration fit. Append-only; in force from ``position`` on."""

    __tablename__ = "prior"
    __table_args__ = (Index(None, "item_id", "lineage_id", "id"),)

    id: Mapped[Id]
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"))
    lineage_id: Mapped[int] = mapped_column(BigId, ForeignKey("lineage.id"))
    position: Mapped[int] = mapped_column(BigId)
    alpha: Mapped[float] = mapped_column(Float)
    beta: Mapped[float] = mapped_column(Float)
    fit_id: Mapped[int] = mapped_column(BigId, ForeignKey("fit.id"))


class Fit(Base):
    """One calibration fit over lineages.

    Its summary (abilities, over-dispersion, n) and where in the outcomes it stood.
    """

    __tablename__ = "fit"

    id: Mapped[Id]
    position: Mapped[int] = mapped_column(BigId)
    summary: Mapped[JsonObject]
    created_at: Mapped[UnixTime]


class Difficulty(Base):
    """An item's difficulty b on the logit scale by one fit, with its standard error."""

    __tablename__ = "difficulty"

    fit_id: Mapped[int] = mapped_column(BigId, ForeignKey("fit.id"), primary_key=True)
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"), primary_key=True)
    b: Mapped[float] = mapped_column(Float)
    se: Mapped[float] = mapped_column(Float)


class StateChange(Base):
    """The audit trail: every change of status or flag, with the evidence that made it. Derived, so it can be rebuilt.

    ``lineage_id`` is `None` for flags of the item alone. ``position`` is the outcome that tipped it.
    """

    __tablename__ = "state_change"
    __table_args__ = (Index(None, "item_id", "lineage_id", "id"), Index(None, "at"))

    id: Mapped[Id]
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"))
    lineage_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("lineage.id"))
    before: Mapped[str] = mapped_column(String(16))
    after: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(String(64))
    position: Mapped[int] = mapped_column(BigId)
    evidence: Mapped[JsonObject]
    at: Mapped[UnixTime]

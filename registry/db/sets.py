"""Task sets.

A name with immutable revisions, each a list of items with a digest of its own; and what a refresh retired.
"""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db.base import Base, BigId, Digest, Id, JsonObject, UnixTime


class TaskSet(Base):
    """A name."""

    __tablename__ = "task_set"
    __table_args__ = (UniqueConstraint("name"),)

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(String(128))
    created_at: Mapped[UnixTime]


class SetRevision(Base):
    """One immutable list of items. Deleting keeps the row, with a reason: the page then answers 410, not 404."""

    __tablename__ = "set_revision"
    __table_args__ = (UniqueConstraint("set_id", "number"), Index(None, "digest"))

    id: Mapped[Id]
    set_id: Mapped[int] = mapped_column(BigId, ForeignKey("task_set.id"))
    number: Mapped[int]
    digest: Mapped[Digest]
    query: Mapped[str] = mapped_column(Text, default="")
    lineage_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("lineage.id"))
    parent_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("set_revision.id"))
    size: Mapped[int]
    note: Mapped[JsonObject]
    created_at: Mapped[UnixTime]
    deleted_at: Mapped[float | None]
    deleted_reason: Mapped[str] = mapped_column(Text, default="")


class SetItem(Base):
    """An item of a revision, at its place in the order that the query gave."""

    __tablename__ = "set_item"
    __table_args__ = (Index(None, "item_id"),)

    revision_id: Mapped[int] = mapped_column(BigId, ForeignKey("set_revision.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"))


class Retirement(Base):
    """A published refresh retired this item for this lineage. Append-only; takes effect after outcome ``position``."""

    __tablename__ = "retirement"
    __table_args__ = (Index(None, "item_id", "lineage_id", "id"),)

    id: Mapped[Id]
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"))
    lineage_id: Mapped[int] = mapped_column(BigId, ForeignKey("lineage.id"))
    revision_id: Mapped[int] = mapped_column(BigId, ForeignKey("set_revision.id"))
    position: Mapped[int] = mapped_column(BigId)
    e_value: Mapped[float]
    at: Mapped[UnixTime]


class Proposal(Base):
    """A refresh proposed for a set: its diff with reasons, until somebody publishes or dismisses it.

    ``decided_by`` names who did: a token, or the user of a command; empty where nobody has, or it was not yet kept.
    """

    __tablename__ = "proposal"
    __table_args__ = (Index(None, "set_id", "id"),)

    id: Mapped[Id]
    set_id: Mapped[int] = mapped_column(BigId, ForeignKey("task_set.id"))
    parent_id: Mapped[int] = mapped_column(BigId, ForeignKey("set_revision.id"))
    lineage_id: Mapped[int] = mapped_column(BigId, ForeignKey("lineage.id"))
    state: Mapped[str] = mapped_column(String(12), default="open")
    body: Mapped[JsonObject]
    revision_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("set_revision.id"))
    created_at: Mapped[UnixTime]
    decided_by: Mapped[str] = mapped_column(String(200), default="")
    decided_at: Mapped[float | None]


class SavedQuery(Base):
    """A query under a name."""

    __tablename__ = "saved_query"
    __table_args__ = (UniqueConstraint("name"),)

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(String(128))
    query: Mapped[str] = mapped_column(Text)
    created_at: Mapped[UnixTime]

"""Tasks under the verifier that judges them, their tags, their files and their check reports.

An *item* is a pair of task digest and verifier digest: evidence belongs to both, so an edit of either starts a new
item (law 7). Nothing here is changed after it was written, but `Item.package`, which names the newest directory seen
with these digests, and the flags, which are derived.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db.base import Base, BigId, Digest, Id, JsonObject, UnixTime


class Item(Base):
    """One task under one verifier.

    Attributes:
        tags: names of its tags, sorted, as they are shown.
        spec: the task's parsed record (`envsdk.spec.model.TaskSpec` as JSON).
        search_text: lower-case slug, family, description and instruction, for free words.
        verified: ``none`` (no report), ``partial`` (incomplete), ``checked`` (complete and passed), ``failed``.
        broken, flaky: flags of the pair alone, whatever the policy.
        ungraded_run: verifier-caused errors in a row, the road to ``broken``.
    """

    __tablename__ = "item"
    __table_args__ = (
        UniqueConstraint("task_digest", "verifier_digest"),
        Index(None, "slug", "id"),
        Index(None, "family"),
    )

    id: Mapped[Id]
    task_digest: Mapped[Digest]
    verifier_digest: Mapped[Digest]
    slug: Mapped[str] = mapped_column(String(256))
    family: Mapped[str] = mapped_column(String(128), default="")
    tags: Mapped[list[str]] = mapped_column(JSON)
    spec: Mapped[JsonObject]
    search_text: Mapped[str] = mapped_column(Text)
    package: Mapped[Digest]
    verified: Mapped[str] = mapped_column(String(8), default="none")
    broken: Mapped[bool] = mapped_column(default=False)
    flaky: Mapped[bool] = mapped_column(default=False)
    ungraded_run: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[UnixTime]


class Tag(Base):
    """A word that items carry. Families are tags of kind ``family``, so that one index serves both."""

    __tablename__ = "tag"
    __table_args__ = (UniqueConstraint("kind", "name"),)

    id: Mapped[Id]
    kind: Mapped[str] = mapped_column(String(8))
    name: Mapped[str] = mapped_column(String(128))
    items: Mapped[int] = mapped_column(default=0)


class ItemTag(Base):
    """Which item carries which tag."""

    __tablename__ = "item_tag"
    __table_args__ = (Index(None, "tag_id", "item_id"),)

    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"), primary_key=True)
    tag_id: Mapped[int] = mapped_column(BigId, ForeignKey("tag.id"), primary_key=True)


class Package(Base):
    """A whole task directory as it was pushed: where each file's bytes lie in the blob store.

    ``manifest`` holds ``{"files": [[path, mode, sha256], ...]}``, sorted by path; links store their target text.
    """

    __tablename__ = "package"

    digest: Mapped[Digest] = mapped_column(primary_key=True)
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"), index=True)
    manifest: Mapped[JsonObject]
    bytes: Mapped[int] = mapped_column(BigId)
    created_at: Mapped[UnixTime]


class CheckReportRow(Base):
    """One report of checks (`envsdk.checks.report.CheckReport`). Append-only.

    ``position`` is the newest outcome there was when the report arrived, so that a rebuild meets both in the same
    order.
    """

    __tablename__ = "check_report"
    __table_args__ = (UniqueConstraint("digest"), Index(None, "item_id", "id"))

    id: Mapped[Id]
    item_id: Mapped[int] = mapped_column(BigId, ForeignKey("item.id"))
    position: Mapped[int] = mapped_column(BigId)
    digest: Mapped[Digest]
    verdict: Mapped[str] = mapped_column(String(16))
    complete: Mapped[bool]
    report: Mapped[JsonObject]
    received_at: Mapped[UnixTime]


def tag_names(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """The (kind, name) tags that a task's spec gives its item, sorted and without repeats."""
    names = {("tag", str(tag).lower()) for tag in spec.get("tags", ())}
    if spec.get("family"):
        names.add(("family", str(spec["family"]).lower()))
    return sorted(names)

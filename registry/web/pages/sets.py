"""Task sets: their names, their immutable revisions, and what each revision changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.db import Item, Lineage, SetItem, SetRevision, Standing, TaskSet
from registry.local import LocalRegistry
from registry.web.render import add_page


def routes(registry: LocalRegistry) -> APIRouter:
    """The list of sets, the latest revision of one, and each revision."""

    def every_set(request: Request) -> Mapping[str, Any]:
        del request
        with registry.database.reading() as session:
            return {"title": "Task sets", "sets": _sets(session)}

    def latest(request: Request) -> Mapping[str, Any]:
        with registry.database.reading() as session:
            return _revision(session, request.path_params["name"], None)

    def one(request: Request) -> Mapping[str, Any]:
        with registry.database.reading() as session:
            return _revision(session, request.path_params["name"], request.path_params["number"])

    router = APIRouter()
    add_page(router, "/sets", "sets.html", every_set)
    add_page(router, "/sets/{name}/{number}", "set.html", one)

    add_page(router, "/sets/{name}", "set.html", latest)
    return router


def _sets(session: Session) -> list[dict[str, Any]]:
    newest = (
        select(SetRevision.set_id, func.max(SetRevision.number).label("number"), func.count().label("revisions"))
        .where(SetRevision.deleted_at.is_(None))
        .group_by(SetRevision.set_id)
        .subquery()
    )
    rows = session.execute(
        select(TaskSet.name, SetRevision, newest.c.revisions)
        .join(newest, newest.c.set_id == TaskSet.id)
        .join(SetRevision, (SetRevision.set_id == TaskSet.id) & (SetRevision.number == newest.c.number))
        .order_by(SetRevision.created_at.desc())
    )
    return [
        {
            "name": name,
            "revision": revision.number,
            "revisions": revisions,
            "size": revision.size,
            "digest": revision.digest,
            "query": revision.query,
            "created_at": revision.created_at,
        }
        for name, revision, revisions in rows
    ]


def _revision(session: Session, name: str, number: str | None) -> dict[str, Any]:
    statement = select(SetRevision).join(TaskSet, TaskSet.id == SetRevision.set_id).where(TaskSet.name == name.lower())
    if number is not None:
        wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
        statement = statement.where(SetRevision.number == wanted)
    revision = session.scalar(
        statement.order_by(SetRevision.deleted_at.is_not(None), SetRevision.number.desc()).limit(1)
    )
    if revision is None:
        place = name if number is None else f"{name}, revision {number}"
        raise UsageError(f"there is no task set {place}", code="no_such_set", hint="/sets lists them")
    if revision.deleted_at is not None:
        why = revision.deleted_reason or "no reason was given"
        raise UsageError(
            f"{name}@{revision.number} was deleted: {why}", code="revision_deleted", hint=f"see /sets/{name}"
        )
    lineage = session.execute(select(Lineage.id, Lineage.name).where(Lineage.is_reference)).first()
    parent = session.get(SetRevision, revision.parent_id) if revision.parent_id else None
    others = session.execute(
        select(SetRevision.number, SetRevision.size, SetRevision.created_at, SetRevision.deleted_at)
        .where(SetRevision.set_id == revision.set_id)
        .order_by(SetRevision.number.desc())
    )
    return {
        "title": f"{name}@{revision.number}",
        "lineage": lineage.name if lineage else "",
        "name": name,
        "revision": revision.number,
        "digest": revision.digest,
        "query": revision.query,
        "size": revision.size,
        "created_at": revision.created_at,
        "note": revision.note,
        "items": _items(session, revision.id, lineage.id if lineage else -1),
        "parent": parent.number if parent else None,
        "diff": _diff(session, revision.id, parent.id) if parent else None,
        "revisions": [
            {
                "number": row.number,
                "size": row.size,
                "created_at": row.created_at,
                "deleted": row.deleted_at is not None,
            }
            for row in others
        ],
    }


def _items(session: Session, revision_id: int, lineage: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(Item.slug, Item.family, Item.task_digest, Item.verifier_digest, Standing)
        .join(SetItem, SetItem.item_id == Item.id)
        .outerjoin(Standing, (Standing.item_id == Item.id) & (Standing.lineage_id == lineage))
        .where(SetItem.revision_id == revision_id)
        .order_by(SetItem.ordinal)
        .limit(1000)
    )
    return [
        {
            "slug": slug,
            "family": family,
            "task_digest": task,
            "verifier_digest": verifier,
            "status": standing.status if standing else "draft",
            "p": standing.mean if standing and standing.n else None,
            "low": standing.low if standing and standing.n else None,
            "high": standing.high if standing and standing.n else None,
            "n": standing.n if standing else 0,
        }
        for slug, family, task, verifier, standing in rows
    ]


def _diff(session: Session, newer: int, older: int) -> dict[str, list[dict[str, str]]]:
    def members(revision: int) -> dict[int, dict[str, str]]:
        rows = session.execute(
            select(Item.id, Item.slug, Item.task_digest)
            .join(SetItem, SetItem.item_id == Item.id)
            .where(SetItem.revision_id == revision)
            .order_by(SetItem.ordinal)
        )
        return {row.id: {"slug": row.slug, "task_digest": row.task_digest} for row in rows}

    new, old = members(newer), members(older)
    return {
        "added": [task for item, task in new.items() if item not in old],
        "removed": [task for item, task in old.items() if item not in new],
    }

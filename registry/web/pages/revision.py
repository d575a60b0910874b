"""One revision of a task set: what it holds, how hard that is, what it changed and why, and how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.db import Difficulty, Fit, Item, Lineage, Proposal, SetItem, SetRevision, Standing, StateChange, TaskSet
from registry.local import LocalRegistry
from registry.revisions import normal_name
from registry.web.membership import count_without, members, shown_lineage, summaries
from registry.web.render import Moved, add_page, place_in_list

PAGE_SIZE = 100
PLOTTED = 2_000
LISTED = 100


def routes(registry: LocalRegistry) -> APIRouter:
    """The latest revision of a set, and each revision."""

    def view(request: Request) -> Mapping[str, Any]:
        name, number = request.path_params["name"], request.path_params.get("number")
        after = place_in_list(request, "after")
        with registry.database.reading() as session:
            revision = find(session, name, number)
            return _revision(
                session,
                name,
                revision,
                policy=request.query_params.get("policy", ""),
                after=-1 if after is None else after,
            )

    router = APIRouter()
    add_page(router, "/sets/{name}/{number}", "set.html", view, parameters=("policy", "after"))
    add_page(router, "/sets/{name}", "set.html", view, parameters=("policy", "after"))
    return router


def find(session: Session, name: str, number: str | None) -> SetRevision:
    """The revision ``number`` of a set, its latest where that is `None`.

    Raises:
        Moved: the name is not written as it is stored.
        UsageError: there is none (``no_such_set``), or it was deleted (``deleted_revision``, with the reason).
    """
    statement = select(SetRevision).join(TaskSet, TaskSet.id == SetRevision.set_id).where(TaskSet.name == name)
    if number is not None:
        wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
        statement = statement.where(SetRevision.number == wanted)
    revision = session.scalar(
        statement.order_by(SetRevision.deleted_at.is_not(None), SetRevision.number.desc()).limit(1)
    )
    if revision is None:
        raise _missing(session, name, number)
    if revision.deleted_at is not None:
        raise deleted(name, revision)
    return revision


def deleted(name: str, revision: SetRevision) -> UsageError:
    """What a reader of a revision that was deleted is told."""
    why = revision.deleted_reason or "no reason was given"
    return UsageError(f"{name}@{revision.number} was deleted: {why}", code="deleted_revision", hint=f"see /sets/{name}")


def _missing(session: Session, name: str, number: str | None) -> Exception:
    try:
        normal = normal_name(name)
    except UsageError:
        normal = name
    if normal != name and session.scalar(select(TaskSet.id).where(TaskSet.name == normal)) is not None:
        return Moved(f"/sets/{normal}" + ("" if number is None else f"/{number}"))
    place = name if number is None else f"{name}, revision {number}"
    near = session.scalars(select(TaskSet.name).where(TaskSet.name.startswith(normal[:3])).limit(5)).all()
    hint = f"near names: {', '.join(near)}" if near else "/sets lists them"
    return UsageError(f"there is no task set {place}", code="no_such_set", hint=hint)


def _revision(session: Session, name: str, revision: SetRevision, *, policy: str, after: int) -> dict[str, Any]:
    lineage, shown = shown_lineage(session, policy)
    parent = session.get(SetRevision, revision.parent_id) if revision.parent_id else None
    items = members(session, revision.id, lineage, after=after, at_most=PAGE_SIZE + 1)
    more = len(items) > PAGE_SIZE
    following = (
        urlencode({"after": items[PAGE_SIZE - 1]["ordinal"]} | ({"policy": policy} if policy else {})) if more else ""
    )
    others = _revisions(session, revision.set_id)
    return {
        "title": f"{name}@{revision.number}",
        "lineage": shown,
        "name": name,
        "revision": revision.number,
        "latest": max((row["number"] for row in others if not row["deleted"]), default=revision.number),
        "digest": revision.digest,
        "query": revision.query,
        "size": revision.size,
        "created_at": revision.created_at,
        "parent": parent.number if parent else None,
        "parent_deleted": parent is not None and parent.deleted_at is not None,
        "diff": _diff(session, revision, parent, lineage) if parent else None,
        "reasons": _reasons(revision),
        "moved": _moved(session, revision, parent, lineage) if parent else [],
        "summary": asdict(summaries(session, [revision.id], lineage)[revision.id]),
        "families": _families(session, revision.id),
        "rates": rates(session, revision.id, lineage),
        "calibration": calibration(session, revision.id),
        "open_proposal": _open_proposal(session, revision.id),
        "items": items[:PAGE_SIZE],
        "first_page": after < 0,
        "next_url": f"/sets/{name}/{revision.number}?{following}" if more else None,
        "policies": list(session.scalars(select(Lineage.name).where(Lineage.name != "").order_by(Lineage.name))),
        "revisions": others,
    }


def _revisions(session: Session, set_id: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(SetRevision.number, SetRevision.size, SetRevision.created_at, SetRevision.deleted_at)
        .where(SetRevision.set_id == set_id)
        .order_by(SetRevision.number.desc())
        .limit(LISTED)
    )
    return [
        {
            "number": row.number,
            "size": row.size,
            "created_at": row.created_at,
            "deleted": row.deleted_at is not None,
        }
        for row in rows
    ]


def _diff(session: Session, newer: SetRevision, older: SetRevision, lineage: int) -> dict[str, Any]:
    return {
        "added": members(session, newer.id, lineage, at_most=LISTED, without=older.id),
        # What a revision held that was deleted is not told in the next one's page either.
        "removed": []
        if older.deleted_at is not None
        else members(session, older.id, lineage, at_most=LISTED, without=newer.id),
        "n_added": count_without(session, newer.id, older.id),
        "n_removed": count_without(session, older.id, newer.id),
    }


def _reasons(revision: SetRevision) -> dict[str, Any] | None:
    """What the refresh that made this revision said of it."""
    note = revision.note
    if "proposal" not in note:
        return None
    return {key: note[key] for key in ("proposal", "policy", "retire", "add")} | {"left_out": note.get("left_out", [])}


def _moved(session: Session, newer: SetRevision, older: SetRevision, lineage: int) -> list[dict[str, Any]]:
    """Tasks of both revisions whose state changed between them."""
    held = aliased(SetItem)
    rows = session.execute(
        select(StateChange, Item.slug, Item.task_digest, Item.verifier_digest)
        .join(Item, Item.id == StateChange.item_id)
        .join(SetItem, (SetItem.item_id == Item.id) & (SetItem.revision_id == newer.id))
        .join(held, (held.item_id == Item.id) & (held.revision_id == older.id))
        .where(
            StateChange.lineage_id == lineage,
            StateChange.at > older.created_at,
            StateChange.at <= newer.created_at,
        )
        .order_by(StateChange.id.desc())
        .limit(LISTED)
    )
    return [
        {
            "slug": slug,
            "task_digest": task,
            "verifier_digest": verifier,
            "before": change.before,
            "after": change.after,
            "reason": change.reason,
        }
        for change, slug, task, verifier in rows
    ]


def _families(session: Session, revision: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(Item.family, func.count())
        .join(SetItem, SetItem.item_id == Item.id)
        .where(SetItem.revision_id == revision)
        .group_by(Item.family)
        .order_by(func.count().desc(), Item.family)
    )
    return [{"name": name, "tasks": tasks} for name, tasks in rows]


def rates(session: Session, revision: int, lineage: int) -> list[list[float]]:
    """Mean, low and high of each measured task's pass rate."""
    rows = session.execute(
        select(Standing.mean, Standing.low, Standing.high)
        .join(SetItem, (SetItem.item_id == Standing.item_id) & (SetItem.revision_id == revision))
        .where(Standing.lineage_id == lineage, Standing.n > 0)
        .limit(PLOTTED)
    )
    return [[row.mean, row.low, row.high] for row in rows]


def calibration(session: Session, revision: int) -> dict[str, Any] | None:
    """Difficulties of a revision's tasks by the newest fit, and the abilities of the policies in it."""
    fit = session.execute(select(Fit.id, Fit.summary, Fit.created_at).order_by(Fit.id.desc()).limit(1)).first()
    if fit is None:
        return None
    rows = session.scalars(
        select(Difficulty.b)
        .join(SetItem, (SetItem.item_id == Difficulty.item_id) & (SetItem.revision_id == revision))
        .where(Difficulty.fit_id == fit.id)
        .limit(PLOTTED)
    )
    difficulties = list(rows)
    if not difficulties:
        return None
    return {"difficulties": difficulties, "abilities": fit.summary["abilities"], "at": fit.created_at}


def _open_proposal(session: Session, revision: int) -> int | None:
    return session.scalar(
        select(Proposal.id).where(Proposal.parent_id == revision, Proposal.state == "open").order_by(Proposal.id.desc())
    )

"""One task under one verifier: what it asks, how hard it is, what its verifier has shown, and its episodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.calibration.intervals import wilson
from registry.db import (
    CheckReportRow,
    Difficulty,
    Item,
    Lineage,
    Outcome,
    Package,
    SetItem,
    SetRevision,
    Standing,
    StateChange,
    TaskSet,
)
from registry.local import LocalRegistry
from registry.web.render import add_page

_DIGEST = re.compile(r"[0-9a-f]{6,64}")
RECENT = 25


def routes(registry: LocalRegistry) -> APIRouter:
    """Pages of single tasks: by name (the newest of that name), and by digest."""

    def by_name(request: Request) -> Mapping[str, Any]:
        slug = request.path_params["slug"]
        with registry.database.reading() as session:
            return _task(session, _find(session, slug, request.query_params.get("task", "")))

    def by_digest(request: Request) -> Mapping[str, Any]:
        with registry.database.reading() as session:
            return _task(session, _find(session, "", request.path_params["digest"]))

    router = APIRouter()
    add_page(router, "/tasks/{slug}", "task.html", by_name)
    add_page(router, "/digest/{digest}", "task.html", by_digest)
    return router


def _find(session: Session, slug: str, digest: str) -> Item:
    statement = select(Item).order_by(Item.id.desc()).limit(1)
    if slug:
        statement = statement.where(Item.slug == slug)
    if digest:
        if not _DIGEST.fullmatch(digest):
            raise UsageError(f"{digest!r} is no digest", code="no_such_task", hint="a digest is hexadecimal")
        statement = statement.where(Item.task_digest >= digest, Item.task_digest < digest + "g")
    item = session.scalar(statement)
    if item is None:
        near = session.scalars(select(Item.slug).where(Item.slug.startswith(slug[:4])).distinct().limit(5)).all()
        raise UsageError(
            f"there is no task {slug or digest!r}",
            code="no_such_task",
            hint=f"near names: {', '.join(near)}" if near and slug else "search for it on /tasks",
        )
    return item


def _task(session: Session, item: Item) -> dict[str, Any]:
    spec = item.spec
    shown = session.execute(select(Lineage.id, Lineage.name).where(Lineage.is_reference)).first()
    manifest = session.scalar(select(Package.manifest).where(Package.digest == item.package)) or {"files": []}
    report = session.scalar(
        select(CheckReportRow.report)
        .where(CheckReportRow.item_id == item.id)
        .order_by(CheckReportRow.id.desc())
        .limit(1)
    )
    return {
        "title": item.slug,
        "lineage": shown.name if shown else "",
        "slug": item.slug,
        "task_digest": item.task_digest,
        "verifier_digest": item.verifier_digest,
        "package_digest": item.package,
        "family": item.family,
        "verified": item.verified,
        "broken": item.broken,
        "flaky": item.flaky,
        "created_at": item.created_at,
        "spec": spec,
        "files": [{"path": path, "mode": mode, "sha256": sha} for path, mode, sha in manifest["files"]],
        "report": report,
        "standings": _standings(session, item.id),
        "versions": _versions(session, item.id, shown.id if shown else -1),
        "difficulty": _difficulty(session, item.id),
        "changes": _changes(session, item.id),
        "episodes": _episodes(session, item.id),
        "sets": _sets(session, item.id),
        "others": _others(session, item),
    }


def _standings(session: Session, item: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(Standing, Lineage.name, Lineage.is_reference)
        .join(Lineage, Lineage.id == Standing.lineage_id)
        .where(Standing.item_id == item)
        .order_by(Lineage.is_reference.desc(), Standing.n.desc())
    )
    return [
        {
            "lineage": name,
            "reference": reference,
            "status": standing.status,
            "p": standing.mean,
            "low": standing.low,
            "high": standing.high,
            "n": standing.n,
            "passes": standing.k,
            "ungraded": standing.ungraded,
            "learnability": standing.learnability,
            "e_value": standing.e_value,
            "weight_version": standing.weight_version,
            "updated_at": standing.updated_at,
        }
        for standing, name, reference in rows
    ]


def _versions(session: Session, item: int, lineage: int) -> list[dict[str, Any]]:
    """Pass rate at each weight version, with the Wilson 95 % interval: right within one version, not across them."""
    rows = session.execute(
        select(
            Outcome.weight_version,
            func.count(Outcome.passed),
            func.sum(case((Outcome.passed.is_(True), 1), else_=0)),
            func.avg(Outcome.seconds),
        )
        .where(Outcome.item_id == item, Outcome.lineage_id == lineage)
        .group_by(Outcome.weight_version)
        .order_by(Outcome.weight_version)
    )
    history = []
    for version, trials, passes, seconds in rows:
        if trials:
            low, high = wilson(int(passes), int(trials))
            history.append(
                {
                    "weight_version": version,
                    "n": trials,
                    "passes": int(passes),
                    "low": low,
                    "high": high,
                    "seconds": seconds,
                }
            )
    return history


def _difficulty(session: Session, item: int) -> dict[str, float] | None:
    row = session.execute(
        select(Difficulty.b, Difficulty.se)
        .where(Difficulty.item_id == item)
        .order_by(Difficulty.fit_id.desc())
        .limit(1)
    ).first()
    return {"b": row.b, "se": row.se} if row else None


def _changes(session: Session, item: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(StateChange, Lineage.name)
        .outerjoin(Lineage, Lineage.id == StateChange.lineage_id)
        .where(StateChange.item_id == item)
        .order_by(StateChange.id.desc())
        .limit(RECENT)
    )
    return [
        {
            "at": change.at,
            "lineage": name or "",
            "before": change.before,
            "after": change.after,
            "reason": change.reason,
            "evidence": change.evidence,
        }
        for change, name in rows
    ]


def _episodes(session: Session, item: int) -> list[dict[str, Any]]:
    rows = session.scalars(select(Outcome).where(Outcome.item_id == item).order_by(Outcome.id.desc()).limit(RECENT))
    return [
        {
            "episode_id": row.episode_id,
            "outcome_class": row.outcome_class,
            "cause": row.cause,
            "reward": row.reward,
            "weight_version": row.weight_version,
            "seconds": row.seconds,
            "tokens": row.tokens,
            "started_at": row.started_at,
        }
        for row in rows
    ]


def _sets(session: Session, item: int) -> list[dict[str, Any]]:
    rows = session.execute(
        select(TaskSet.name, func.max(SetRevision.number))
        .join(SetRevision, SetRevision.set_id == TaskSet.id)
        .join(SetItem, SetItem.revision_id == SetRevision.id)
        .where(SetItem.item_id == item, SetRevision.deleted_at.is_(None))
        .group_by(TaskSet.name)
        .order_by(TaskSet.name)
    )
    return [{"name": name, "revision": number} for name, number in rows]


def _others(session: Session, item: Item) -> list[dict[str, Any]]:
    rows = session.execute(
        select(Item.task_digest, Item.verifier_digest, Item.created_at)
        .where(Item.slug == item.slug, Item.id != item.id)
        .order_by(Item.id.desc())
        .limit(10)
    )
    return [{"task_digest": task, "verifier_digest": verifier, "created_at": at} for task, verifier, at in rows]

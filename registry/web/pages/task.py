"""One task under one verifier: what it asks, how hard it is, what its verifier has shown, and its episodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import exp
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.checks.report import CheckReport
from envsdk.errors import UsageError
from envsdk.spec.model import TaskSpec
from registry.calibration.intervals import wilson
from registry.db import (
    CheckReportRow,
    Difficulty,
    Fit,
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
from registry.web.episodes import episodes_of
from registry.web.membership import shown_lineage
from registry.web.plots import item_information
from registry.web.render import Moved, add_page, place_in_list, task_url

_DIGEST = re.compile(r"[0-9a-f]{6,64}")
RECENT = 25
NAMES = 5


def routes(registry: LocalRegistry) -> APIRouter:
    """The page of a task by its name: the newest of that name, or the one whose digests are given."""

    def view(request: Request) -> Mapping[str, Any]:
        given = request.query_params
        with registry.database.reading() as session:
            item = find(
                session, request.path_params["slug"], task=given.get("task", ""), verifier=given.get("verifier", "")
            )
            lineage, name = shown_lineage(session, given.get("policy", ""))
            before = place_in_list(request, "before")
            page = episodes_of(session, item.id, before=before)
            return _task(session, item, lineage, name) | {
                "episodes": page.rows,
                "older_url": None if page.older is None else _older(item, given.get("policy", ""), page.older),
                "newest_episodes": before is None,
            }

    router = APIRouter()
    add_page(router, "/tasks/{slug}", "task.html", view, parameters=("task", "verifier", "policy", "before"))
    return router


def _older(item: Item, policy: str, before: int) -> str:
    given = {"policy": policy} if policy else {}
    return f"{task_url(item.slug, item.task_digest, item.verifier_digest)}&{urlencode(given | {'before': before})}"


def find(session: Session, slug: str, *, task: str = "", verifier: str = "") -> Item:
    """The newest item of a name, of those whose digests begin as given.

    Raises:
        Moved: the name is written in another case.
        UsageError: there is none (``no_such_task``).
    """
    statement = select(Item).where(Item.slug == slug).order_by(Item.id.desc()).limit(1)
    for column, digest in ((Item.task_digest, task), (Item.verifier_digest, verifier)):
        if digest and not _DIGEST.fullmatch(digest):
            raise UsageError(f"{digest!r} is no digest", code="no_such_task", hint="a digest is hexadecimal")
        if digest:
            statement = statement.where(column >= digest, column < digest + "g")
    item = session.scalar(statement)
    if item is not None:
        return item
    lower = slug.lower()
    if lower != slug and session.scalar(select(Item.id).where(Item.slug == lower).limit(1)) is not None:
        raise Moved(f"/tasks/{lower}")
    near = session.scalars(select(Item.slug).where(Item.slug.startswith(lower[:4])).distinct().limit(NAMES)).all()
    raise UsageError(
        f"there is no task {slug!r}{' with that digest' if task or verifier else ''}",
        code="no_such_task",
        hint=f"near names: {', '.join(near)}" if near else "search for it on /tasks",
    )


def _task(session: Session, item: Item, lineage: int, policy: str) -> dict[str, Any]:
    # Through the models: what an older version stored gets the fields that came since.
    spec = TaskSpec.model_validate(item.spec).model_dump(mode="json")
    manifest = session.scalar(select(Package.manifest).where(Package.digest == item.package)) or {"files": []}
    report = session.scalar(
        select(CheckReportRow.report)
        .where(CheckReportRow.item_id == item.id)
        .order_by(CheckReportRow.id.desc())
        .limit(1)
    )
    return {
        "title": item.slug,
        "lineage": policy,
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
        "report": None if report is None else CheckReport.model_validate(report).model_dump(mode="json"),
        "standings": _standings(session, item.id, lineage),
        "versions": by_version(session, item.id, lineage),
        "difficulty": _difficulty(session, item.id),
        "changes": _changes(session, item.id),
        "sets": _sets(session, item.id),
        "others": _others(session, item),
    }


def standing_of(session: Session, item: int, lineage: int) -> Standing | None:
    """One lineage's estimate of an item."""
    return session.get(Standing, (lineage, item))


def _standings(session: Session, item: int, shown: int) -> list[dict[str, Any]]:
    """Every lineage's estimate, the shown one first."""
    rows = session.execute(
        select(Standing, Lineage.name, Lineage.is_reference)
        .join(Lineage, Lineage.id == Standing.lineage_id)
        .where(Standing.item_id == item)
        .order_by((Lineage.id == shown).desc(), Lineage.is_reference.desc(), Standing.n.desc())
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


def by_version(session: Session, item: int, lineage: int) -> list[dict[str, Any]]:
    """Pass rate at each weight version, with the Wilson 95 % interval: right within one version, not across them.

    ``runs``: how many runs sent it. Beyond version 0, where all begin, their models may be different ones.
    """
    rows = session.execute(
        select(
            Outcome.weight_version,
            func.count(Outcome.passed),
            func.sum(case((Outcome.passed.is_(True), 1), else_=0)),
            func.avg(Outcome.seconds),
            func.count(Outcome.run_id.distinct()),
        )
        .where(Outcome.item_id == item, Outcome.lineage_id == lineage)
        .group_by(Outcome.weight_version)
        .order_by(Outcome.weight_version)
    )
    history = []
    for version, trials, passes, seconds, runs in rows:
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
                    "runs": runs,
                }
            )
    return history


def _difficulty(session: Session, item: int) -> dict[str, Any] | None:
    """The item's difficulty by the newest fit that holds it, and the abilities of the policies in that fit."""
    row = session.execute(
        select(Difficulty.b, Difficulty.se, Fit.summary, Fit.created_at)
        .join(Fit, Fit.id == Difficulty.fit_id)
        .where(Difficulty.item_id == item)
        .order_by(Difficulty.fit_id.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    abilities = [
        one | {"p": 1.0 / (1.0 + exp(row.b - one["theta"])), "information": item_information(one["theta"], row.b)}
        for one in row.summary["abilities"]
    ]
    return {"b": row.b, "se": row.se, "at": row.created_at, "abilities": abilities}


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

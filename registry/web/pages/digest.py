"""What a digest names, for good: a task, a verifier, a task's directory, or a task set's revision.

Nothing here depends on measurements or on the time, so it may be kept for a year. Only a whole digest has such a page;
the beginning of one leads to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request

from envsdk.errors import UsageError
from registry.db import Item, Package, SetItem, SetRevision, TaskSet
from registry.local import LocalRegistry
from registry.web.caching import IMMUTABLE
from registry.web.pages.revision import deleted
from registry.web.render import Moved, add_page, task_url

_DIGEST = re.compile(r"[0-9a-f]{6,64}")
_WHOLE = 64
_MET = ("instruction", "agent", "container", "services", "budget", "artifacts")
"""What of a spec the agent meets: the task digest covers it."""
LISTED = 500


def routes(registry: LocalRegistry) -> APIRouter:
    """The page of a digest."""

    def view(request: Request) -> Mapping[str, Any]:
        digest = request.path_params["digest"].lower()
        if not _DIGEST.fullmatch(digest):
            raise UsageError(
                f"{digest!r} is no digest",
                code="no_such_task",
                hint="a digest is 64 hexadecimal digits, or 6 or more of them",
            )
        with registry.database.reading() as session:
            if len(digest) < _WHOLE:
                raise Moved(f"/digest/{_whole(session, digest)}")
            found = _task(session, digest) or _verifier(session, digest) or _set(session, digest)
            found = found or _package(session, digest)
        if found is None:
            raise _unknown(digest)
        return {"title": digest[:12], "digest": digest} | found

    router = APIRouter()
    add_page(
        router,
        "/digest/{digest}",
        "digest.html",
        view,
        cache=IMMUTABLE,
        modified=lambda shown: float(shown["created_at"]),
    )
    return router


def _unknown(digest: str) -> UsageError:
    return UsageError(f"nothing here has the digest {digest[:20]}", code="no_such_task", hint="search for it on /tasks")


def _whole(session: Session, begins: str) -> str:
    found: set[str] = set()
    for column in (Item.task_digest, Item.verifier_digest, SetRevision.digest, Package.digest):
        found |= set(session.scalars(select(column).where(column >= begins, column < begins + "g").distinct().limit(2)))
    if len(found) > 1:
        raise UsageError(f"several digests begin with {begins}", code="ambiguous_digest", hint="give more digits of it")
    if not found:
        raise _unknown(begins)
    return found.pop()


def _task(session: Session, digest: str) -> dict[str, Any] | None:
    item = session.scalar(select(Item).where(Item.task_digest == digest).order_by(Item.id).limit(1))
    if item is None:
        return None
    return {
        "kind": "task",
        "created_at": item.created_at,
        "now_url": task_url(item.slug, digest),
        "now": item.slug,
        "holds": {key: item.spec[key] for key in _MET if item.spec.get(key)},
    }


def _verifier(session: Session, digest: str) -> dict[str, Any] | None:
    item = session.scalar(select(Item).where(Item.verifier_digest == digest).order_by(Item.id).limit(1))
    if item is None:
        return None
    return {
        "kind": "verifier",
        "created_at": item.created_at,
        "now_url": task_url(item.slug, item.task_digest, digest),
        "now": item.slug,
        "holds": {"verifier": item.spec["verifier"]},
    }


def _package(session: Session, digest: str) -> dict[str, Any] | None:
    package = session.get(Package, digest)
    if package is None:
        return None
    item = session.get_one(Item, package.item_id)
    return {
        "kind": "task directory",
        "created_at": package.created_at,
        "now_url": task_url(item.slug, item.task_digest, item.verifier_digest),
        "now": item.slug,
        "holds": {"files": [f"{mode} {sha} {path}" for path, mode, sha in package.manifest["files"]]},
    }


def _set(session: Session, digest: str) -> dict[str, Any] | None:
    revision = session.scalar(
        select(SetRevision)
        .where(SetRevision.digest == digest)
        .order_by(SetRevision.deleted_at.is_not(None), SetRevision.id)
        .limit(1)
    )
    if revision is None:
        return None
    name = session.scalar(select(TaskSet.name).where(TaskSet.id == revision.set_id))
    if revision.deleted_at is not None:
        raise deleted(str(name), revision)
    rows = session.execute(
        select(Item.task_digest, Item.verifier_digest)
        .join(SetItem, SetItem.item_id == Item.id)
        .where(SetItem.revision_id == revision.id)
        .order_by(Item.task_digest, Item.verifier_digest)
        .limit(LISTED)
    )
    return {
        "kind": "task set",
        "created_at": revision.created_at,
        "now_url": f"/sets/{name}/{revision.number}",
        "now": f"{name}@{revision.number}",
        "holds": {"size": revision.size, "items": [f"{task} {verifier}" for task, verifier in rows]},
    }

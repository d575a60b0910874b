"""An Atom feed of each task set: one entry a revision, with what it changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response

from registry.db import SetRevision
from registry.local import LocalRegistry
from registry.web.caching import with_etag
from registry.web.membership import count_without
from registry.web.pages.revision import find

NEWEST = 20
_ATOM = "http://www.w3.org/2005/Atom"


def routes(registry: LocalRegistry) -> APIRouter:
    """``/sets/NAME/feed.atom``."""
    router = APIRouter()

    @router.get("/sets/{name}/feed.atom")
    def feed(request: Request, name: str) -> Response:
        """The newest revisions of a set as an Atom feed."""
        base = str(request.base_url).rstrip("/")
        with registry.database.reading() as session:
            latest = find(session, name, None)
            root = _feed(session, base, name, latest)
        response = Response(
            b'<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root), media_type="application/atom+xml"
        )
        return with_etag(request, response)

    return router


def _feed(session: Session, base: str, name: str, latest: SetRevision) -> Element:
    root = Element("feed", xmlns=_ATOM)
    _text(root, "title", f"Revisions of {name}")
    _text(root, "id", f"{base}/sets/{name}")
    _text(root, "updated", _at(latest.created_at))
    SubElement(root, "link", rel="self", href=f"{base}/sets/{name}/feed.atom")
    SubElement(root, "link", rel="alternate", href=f"{base}/sets/{name}")
    revisions = session.scalars(
        select(SetRevision)
        .where(SetRevision.set_id == latest.set_id, SetRevision.deleted_at.is_(None))
        .order_by(SetRevision.number.desc())
        .limit(NEWEST)
    )
    for revision in revisions:
        entry = SubElement(root, "entry")
        _text(entry, "title", f"{name}@{revision.number}")
        _text(entry, "id", f"{base}/sets/{name}/{revision.number}")
        _text(entry, "updated", _at(revision.created_at))
        SubElement(entry, "link", href=f"{base}/sets/{name}/{revision.number}")
        _text(SubElement(entry, "author"), "name", "task registry")
        _text(entry, "summary", _said(session, revision))
    return root


def _said(session: Session, revision: SetRevision) -> str:
    size = f"{revision.size:,} tasks"
    if revision.parent_id is None:
        return f"{size}."
    added = count_without(session, revision.id, revision.parent_id)
    removed = count_without(session, revision.parent_id, revision.id)
    why = f", by a refresh for {revision.note['policy']}" if "proposal" in revision.note else ""
    return f"{size}: {added:,} added, {removed:,} removed{why}."


def _text(parent: Element, name: str, text: Any) -> None:
    SubElement(parent, name).text = str(text)


def _at(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, tz=UTC).isoformat(timespec="seconds")

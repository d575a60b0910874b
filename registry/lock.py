"""The lock file: the task-set revision that a run is pinned to, as JSON.

A run reads its tasks from the lock alone, so a later refresh of the set changes nothing under it. The digest is
checked when a lock is read: an edited list is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

from envsdk.errors import SpecError, StoreError
from envsdk.files.replace import write_whole
from registry.revisions import SetEntry, set_digest
from registry.sets import TaskSetRevision

FORMAT = 1


def write_lock(revision: TaskSetRevision, path: Path) -> None:
    """Write the lock atomically.

    Raises:
        StoreError: the file cannot be written.
    """
    body = {
        "format": FORMAT,
        "set": revision.name,
        "revision": revision.revision,
        "digest": revision.digest,
        "query": revision.query,
        "items": [
            {"slug": item.slug, "task_digest": item.task_digest, "verifier_digest": item.verifier_digest}
            for item in revision.items
        ],
    }
    try:
        write_whole(path, json.dumps(body, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise StoreError(
            f"cannot write the lock: {error}",
            code="lock_write_failed",
            hint="see to the folder and its permissions",
            where=str(path),
        ) from error


def read_lock(path: Path) -> TaskSetRevision:
    """The revision a lock pins.

    Raises:
        StoreError: the file cannot be read.
        SpecError: it is no lock (``bad_lock``), or its items are not those of its digest (``digest_mismatch``).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"cannot read the lock: {error}",
            code="lock_read_failed",
            hint="name a lock that `envsdk registry pin --lock` wrote",
            where=str(path),
        ) from error
    try:
        body = json.loads(text)
        items = tuple(SetEntry(item["slug"], item["task_digest"], item["verifier_digest"]) for item in body["items"])
        revision = TaskSetRevision(body["set"], int(body["revision"]), body["digest"], items, body["query"])
        known = body["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise SpecError(f"this is no lock file: {error}", code="bad_lock", where=str(path)) from error
    if not known:
        raise SpecError(
            "the lock is of another format", code="bad_lock", where=str(path), hint="resolve the query again"
        )
    if set_digest(items) != revision.digest:
        raise SpecError(
            "the lock's items are not those of its digest",
            code="digest_mismatch",
            where=str(path),
            hint="the file was edited; resolve the query again",
        )
    return revision

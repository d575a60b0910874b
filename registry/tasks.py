"""Put tasks into the registry, and get them out again as the same directory.

A task enters with the files it has now: its digests are computed again, and a task that no longer matches its own
digests is refused (``digest_mismatch``). Without a complete, passing check report it enters as a draft only (law 9).
Pushing the same thing again changes nothing. Nothing that is stored is ever executed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from envsdk.checks.report import CheckReport
from envsdk.digest import Row, canonical, sha256_hex, tree_rows
from envsdk.errors import EnvsdkError, StoreError, UsageError
from envsdk.spec.directory import open_directory
from envsdk.spec.load import load_task
from envsdk.spec.model import Task
from registry.acceptance import Rejected
from registry.blobs import BlobStore
from registry.client import Pair
from registry.db import CheckReportRow, Item, ItemTag, Lineage, Outcome, Package, Tag
from registry.db.engine import Database
from registry.db.items import tag_names
from registry.derive.events import report_event
from registry.derive.fold import fold
from registry.derive.lineages import ensure_reference, fresh_standings

_TAG = 128
"""Characters of a tag or a family."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """A task that is in the registry now. ``new``: it was not before. ``verified`` as `registry.db.items.Item`.

    ``known_as``: the name under which the registry has this very task and verifier, where that is another one.
    """

    slug: str
    task_digest: str
    verifier_digest: str
    new: bool
    verified: str
    known_as: str = ""


@dataclass(frozen=True, slots=True)
class PushResult:
    """What became of the tasks of one push."""

    pushed: tuple[Pushed, ...]
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class _Stored:
    task: Task
    rows: list[Row]
    size: int


def push_tasks(
    database: Database, blobs: BlobStore, tasks: Iterable[Task], reports: Iterable[CheckReport] = ()
) -> PushResult:
    """Push tasks with the check reports that belong to their digests; a report of another digest is rejected.

    A report may also belong to an item that was pushed before.
    """
    pushed: list[Pushed] = []
    rejected: list[Rejected] = []
    by_pair: dict[Pair, list[CheckReport]] = {}
    for report in reports:
        by_pair.setdefault((report.task_digest, report.verifier_digest), []).append(report)
    for task in tasks:
        try:
            stored = _store_files(blobs, task)
        except EnvsdkError as error:
            rejected.append(Rejected(task.slug, error.code, error.message))
            continue
        mine = by_pair.pop((task.digests.task, task.digests.verifier), [])
        with database.writing() as session:
            pushed.append(_insert(session, stored, mine))
    for pair, left in by_pair.items():
        with database.writing() as session:
            item = session.scalar(select(Item.id).where(Item.task_digest == pair[0], Item.verifier_digest == pair[1]))
            if item is None:
                rejected.append(Rejected(left[0].slug, "unknown_digest", "a check report of digests that are not here"))
            else:
                _add_reports(session, item, left)
    return PushResult(tuple(pushed), tuple(rejected))


def fetch_task(database: Database, blobs: BlobStore, pair: Pair, dest: Path) -> Task:
    """Write the task's directory to ``dest``, which must not exist, and load it.

    Raises:
        UsageError: no such task (``unknown_digest``), or ``dest`` exists.
        StoreError: a blob is missing or damaged, or the directory's digests differ (``digest_mismatch``).
    """
    return place_task(package_files(database, blobs, pair), dest, expected=pair)


def package_files(database: Database, blobs: BlobStore, pair: Pair) -> list[tuple[str, str, bytes]]:
    """Every file (path, mode, content) of the newest directory with these digests.

    Raises:
        UsageError: no such task (``unknown_digest``).
        StoreError: a blob is missing or damaged.
    """
    with database.reading() as session:
        manifest = session.scalar(
            select(Package.manifest)
            .join(Item, Item.package == Package.digest)
            .where(Item.task_digest == pair[0], Item.verifier_digest == pair[1])
        )
    if manifest is None:
        raise UsageError(
            f"no task {pair[0][:12]} under verifier {pair[1][:12]} here",
            code="unknown_digest",
            hint="push it first: `envsdk registry push`; or name the registry that holds it",
        )
    return [(path, mode, blobs.get(digest)) for path, mode, digest in manifest["files"]]


def place_task(files: Sequence[tuple[str, str, bytes]], dest: Path, *, expected: Pair | None = None) -> Task:
    """Write files ``(path, mode, content)`` as a directory, at once or not at all, and load the task in it.

    Raises:
        UsageError: ``dest`` exists, or a path would leave it.
        SpecError: what was written is no task.
        StoreError: it is not the task that was ``expected`` (``digest_mismatch``).
    """
    if dest.exists():
        raise UsageError(f"{dest} exists", code="exists", hint="choose another folder, or remove it")
    dest.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".fetch-", dir=dest.parent))
    try:
        _write(files, part)
        digests = load_task(part).digests
        if expected is not None and (digests.task, digests.verifier) != expected:
            raise StoreError(
                f"the files of task {expected[0][:12]} have digest {digests.task[:12]}",
                code="digest_mismatch",
                hint="push the task again",
            )
        part.chmod(0o755)
        part.rename(dest)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return load_task(dest)


def _write(files: Sequence[tuple[str, str, bytes]], root: Path) -> None:
    paths = {path for path, _, _ in files}
    if len(paths) != len(files):
        raise UsageError("a path is given twice", code="unsafe_path", hint="send each file of a task once")
    links = [file for file in files if file[1] == "120000"]
    for path, mode, content in [file for file in files if file[1] != "120000"] + links:
        pure = PurePosixPath(path)
        inside = not pure.is_absolute() and ".." not in pure.parts and "\0" not in path and pure.as_posix() == path
        if not inside or any(str(parent) in paths for parent in pure.parents):
            raise UsageError(
                f"{path[:200]!r} is no path inside a task",
                code="unsafe_path",
                hint="paths are relative to the task, without ..",
            )
        try:
            _write_one(root / path, mode, content)
        except (OSError, ValueError) as error:
            # A name that is too long, a link to nothing: the file system's own limits.
            raise UsageError(f"{path[:200]!r} cannot be written: {error}"[:500], code="unsafe_path") from error


def _write_one(target: Path, mode: str, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == "120000":
        # Links come last, so that no file is ever written through one; loading refuses what leaves the root.
        os.symlink(content.decode(), target)  # noqa: PTH211 - the target is text, not a path to normalise
    else:
        target.write_bytes(content)
        target.chmod(0o755 if mode == "100755" else 0o644)


def _store_files(blobs: BlobStore, task: Task) -> _Stored:
    found = load_task(task.root).digests
    if found != task.digests:
        raise StoreError(
            f"{task.slug}: the files under {task.root} are not those of digest {task.digests.task[:12]}",
            code="digest_mismatch",
            hint="load the task again, check it, and push that",
        )
    long = [name for name in (*task.spec.tags, task.spec.family) if len(name) > _TAG or "\0" in name]
    if long:
        raise UsageError(
            f"the tag {long[0][:40]!r}... is longer than {_TAG} characters",
            code="bad_tag",
            hint="shorten it in task.toml",
        )
    directory = open_directory(task.root)
    rows = tree_rows(directory.root, directory.entries)
    size = 0
    for entry, row in zip(directory.entries, rows, strict=True):
        data = entry.target.encode() if entry.target is not None else (task.root / entry.path).read_bytes()
        size += len(data)
        if blobs.put(data) != row[2]:
            raise StoreError(f"{task.slug}: {entry.path} changed while it was pushed", code="digest_mismatch")
    return _Stored(task, rows, size)


def _insert(session: Session, stored: _Stored, reports: Sequence[CheckReport]) -> Pushed:
    task = stored.task
    pair = (task.digests.task, task.digests.verifier)
    item = session.scalar(select(Item).where(Item.task_digest == pair[0], Item.verifier_digest == pair[1]))
    new = item is None
    if item is None:
        item = _new_item(session, task)
    if session.get(Package, task.digests.package) is None:
        session.add(
            Package(
                digest=task.digests.package,
                item_id=item.id,
                manifest={"files": stored.rows},
                bytes=stored.size,
                created_at=time.time(),
            )
        )
    known_as = "" if item.slug == task.slug else item.slug
    # The directory of a task that was proven stays: a copy under another name may lack what proves it, the solution.
    if not known_as or item.verified != "checked":
        item.package = task.digests.package
    session.flush()
    _add_reports(session, item.id, reports)
    session.refresh(item)
    return Pushed(task.slug, *pair, new=new, verified=item.verified, known_as=known_as)


def _new_item(session: Session, task: Task) -> Item:
    spec = task.spec.model_dump(mode="json")
    words = (task.slug, task.spec.family, task.spec.description, task.spec.instruction)
    item = Item(
        task_digest=task.digests.task,
        verifier_digest=task.digests.verifier,
        slug=task.slug,
        family=task.spec.family,
        tags=[name for kind, name in tag_names(spec) if kind == "tag"],
        spec=spec,
        search_text="\n".join(words).lower().replace("\0", " "),  # PostgreSQL's text holds no NUL
        package=task.digests.package,
        created_at=time.time(),
    )
    session.add(item)
    session.flush()
    for kind, name in tag_names(spec):
        tag = session.scalar(select(Tag).where(Tag.kind == kind, Tag.name == name))
        if tag is None:
            tag = Tag(kind=kind, name=name, items=0)
            session.add(tag)
            session.flush()
        session.execute(update(Tag).where(Tag.id == tag.id).values(items=Tag.items + 1))
        session.add(ItemTag(item_id=item.id, tag_id=tag.id))
    ensure_reference(session)
    session.flush()
    for lineage in session.scalars(select(Lineage.id)).all():
        fresh_standings(session, lineage, items=select(Item.id).where(Item.id == item.id))
    return item


def _add_reports(session: Session, item: int, reports: Sequence[CheckReport]) -> None:
    position = session.scalar(select(func.max(Outcome.id))) or 0
    for report in reports:
        body = report.model_dump(mode="json")
        digest = sha256_hex(canonical(body))
        if session.scalar(select(CheckReportRow.id).where(CheckReportRow.digest == digest)) is not None:
            continue
        now = time.time()
        session.add(
            CheckReportRow(
                item_id=item,
                position=position,
                digest=digest,
                verdict=report.verdict,
                complete=report.complete,
                report=body,
                received_at=now,
            )
        )
        session.flush()
        fold(session, [report_event(item, position, body, now)])

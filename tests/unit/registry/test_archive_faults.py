"""Archives that were damaged on the way: refused by name, and the registry they were read into left empty."""

from __future__ import annotations

import errno
import json

import pytest

from envsdk.errors import EnvsdkError, StoreError
from registry.archive import PRIMARY, back_up, export_archive, import_archive
from registry.derive.rebuild import derived_digest
from registry.local import LocalRegistry


@pytest.fixture(scope="module")
def source(tmp_path_factory, make_task, make_report, make_record):
    """An archive of a registry with tasks, outcomes of two policies and a set."""
    folder = tmp_path_factory.mktemp("source")
    with LocalRegistry(f"sqlite:///{folder}/registry.sqlite") as registry:
        tasks = [make_task(slug, tags=("shell",), family="f") for slug in ("a", "b")]
        registry.push(tasks, [make_report(task) for task in tasks])
        registry.append([make_record(task, n % 2 == 0) for task in tasks for n in range(6)], run="r")
        registry.append([make_record(tasks[0], True, lineage="large") for _ in range(13)])
        registry.resolve("tag:shell", name="set")
        with registry.database.reading() as session:
            digest = derived_digest(session)
        export_archive(registry.database, registry.blobs, folder / "archive")
    return folder / "archive", digest


@pytest.fixture
def archive(source, tmp_path):
    """A copy that may be damaged."""
    copy = tmp_path / "archive"
    for path in source[0].rglob("*"):
        target = copy / path.relative_to(source[0])
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return copy


def without_last_line(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def cut_in_the_middle(path):
    path.write_bytes(path.read_bytes()[:-40])


def with_an_unknown_column(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join(json.dumps(json.loads(line) | {"colour": "blue"}) for line in lines))


def without_a_column(path):
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join(json.dumps({k: v for k, v in json.loads(line).items() if k != "episode_id"}) for line in lines)
    )


def every_line_twice(path):
    path.write_text(path.read_text() * 2)


def no_json(path):
    path.write_text("]]]\n")


def no_row(path):
    path.write_text("3\n")


def gone(path):
    path.unlink()


DAMAGES = [
    ("tables/outcome.jsonl", without_last_line),
    ("tables/outcome.jsonl", cut_in_the_middle),
    ("tables/outcome.jsonl", with_an_unknown_column),
    ("tables/outcome.jsonl", without_a_column),
    ("tables/outcome.jsonl", every_line_twice),
    ("tables/outcome.jsonl", no_json),
    ("tables/outcome.jsonl", no_row),
    ("tables/outcome.jsonl", gone),
    ("tables/episode.jsonl", without_last_line),
    ("tables/set_item.jsonl", without_last_line),
    ("tables/item.jsonl", without_last_line),
    ("tables/lineage.jsonl", gone),
    ("archive.json", no_json),
    ("archive.json", no_row),
    ("archive.json", gone),
]


@pytest.mark.parametrize(("file", "damage"), DAMAGES, ids=lambda value: getattr(value, "__name__", value))
def test_a_damaged_archive_is_refused_and_leaves_nothing(registry, archive, file, damage):
    damage(archive / file)
    with pytest.raises(EnvsdkError) as caught:
        import_archive(registry.database, registry.blobs, archive)
    assert caught.value.code in {"bad_archive", "database_failed"}
    assert registry.query("").total == 0


def test_a_damaged_blob_is_named(registry, archive):
    blob = min((archive / "blobs").iterdir())
    blob.write_bytes(b"other")
    with pytest.raises(EnvsdkError) as caught:
        import_archive(registry.database, registry.blobs, archive)
    assert (caught.value.code, caught.value.where) == ("blob_corrupt", str(blob))
    assert registry.query("").total == 0


def test_after_a_refusal_the_whole_archive_is_still_read(registry, archive, source):
    kept = (archive / "tables" / "outcome.jsonl").read_bytes()
    without_last_line(archive / "tables" / "outcome.jsonl")
    with pytest.raises(EnvsdkError):
        import_archive(registry.database, registry.blobs, archive)
    (archive / "tables" / "outcome.jsonl").write_bytes(kept)
    import_archive(registry.database, registry.blobs, archive)
    with registry.database.reading() as session:
        assert derived_digest(session) == source[1]


def test_every_table_that_holds_something_primary_is_in_the_archive(archive):
    assert {path.stem for path in (archive / "tables").iterdir()} == {model.__tablename__ for model in PRIMARY}


def test_an_export_half_written_is_no_archive(registry, archive):
    """``archive.json`` is written last, so that an export that was killed is recognised."""
    (archive / "archive.json").unlink()
    (archive / "tables" / "saved_query.jsonl").unlink()
    with pytest.raises(EnvsdkError) as caught:
        import_archive(registry.database, registry.blobs, archive)
    assert caught.value.code == "bad_archive"


def test_an_export_while_outcomes_arrive_is_of_one_moment(registry, make_task, make_record, tmp_path):
    """What is written between two tables of the export is in neither."""
    task = make_task("a")
    registry.push([task])
    registry.append([make_record(task, True) for _ in range(3)])
    told = []

    def heard(table, count):
        told.append((table, count))
        if table == "outcome":
            registry.append([make_record(task, True) for _ in range(5)])

    export_archive(registry.database, registry.blobs, tmp_path / "archive", heard=heard)
    assert dict(told)["outcome"] == dict(told)["episode"] == 3
    assert registry.query("").items[0].n == 8
    with LocalRegistry(f"sqlite:///{tmp_path}/copy.sqlite") as other:
        import_archive(other.database, other.blobs, tmp_path / "archive")
        assert other.query("").items[0].n == 3


class FullDisk:
    """A blob store whose reader finds no room for what it reads."""

    def get(self, digest):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("write", [export_archive, back_up])
@pytest.mark.parametrize("there", [False, True])
def test_a_disk_that_fills_up_leaves_the_destination_as_it_was(tmp_path, make_task, write, there):
    dest = tmp_path / "out" / "copy"
    (dest if there else dest.parent).mkdir(parents=True)
    with LocalRegistry(f"sqlite:///{tmp_path}/registry.sqlite") as registry:
        registry.push([make_task("a")])
        with pytest.raises(StoreError) as caught:
            write(registry.database, FullDisk(), dest)
    assert (caught.value.code, caught.value.where) == ("unwritable", str(dest))
    assert [entry.name for entry in dest.parent.iterdir()] == (["copy"] if there else [])
    assert not there or not list(dest.iterdir())

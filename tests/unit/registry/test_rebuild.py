"""What is derived can be thrown away: rebuilding, and moving everything to another database, give the same."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import delete, select, update

from envsdk.errors import UsageError
from registry.archive import back_up, export_archive, import_archive
from registry.db import Item, Outcome, Retirement, Standing, StandingTag
from registry.derive.events import RetireEvent
from registry.derive.fold import fold
from registry.derive.rebuild import derived_digest, rebuild
from registry.integrity import look
from registry.local import LocalRegistry


@pytest.fixture
def lived_in(registry, make_task, make_report, make_record):
    """A registry after a random life: pushes, reports, outcomes of three lineages in batches, an oracle, a retirement."""
    rng = random.Random(5)
    tasks = [make_task(f"task-{n}", tags=("a", "b")[: n % 3], family="f" if n % 2 else "") for n in range(6)]
    registry.push(tasks[:4], [make_report(task) for task in tasks[:3]])
    version = 0
    for _ in range(6):
        batch = []
        for _ in range(40):
            task = rng.choice(tasks[:4])
            rate = {0: 1.0, 1: 0.5, 2: 0.0, 3: 0.8}[tasks.index(task)]
            passed = rng.choice([None, *[rng.random() < rate] * 9])
            cause = "verifier_crash" if passed is None and rng.random() < 0.3 else ""
            batch.append(
                make_record(
                    task, passed, cause=cause, version=version, lineage=rng.choice(["small", "large", "oracle"])
                )
            )
        registry.append(batch)
        version += rng.choice([0, 1])
    registry.push(tasks, [make_report(tasks[3]), make_report(tasks[1], repeat="fail")])
    registry.resolve("status:saturating,saturated,learnable", name="set")
    with registry.database.writing() as session:
        retire(session, registry)
    registry.append([make_record(tasks[0], False, version=version) for _ in range(4)])
    return registry


def retire(session, registry):
    item = session.scalar(select(Item.id).where(Item.slug == "task-0"))
    position = session.scalar(select(Outcome.id).order_by(Outcome.id.desc()).limit(1))
    revision = 1
    lineage = session.scalar(select(Standing.lineage_id).where(Standing.item_id == item, Standing.n > 0).limit(1))
    session.add(
        Retirement(item_id=item, lineage_id=lineage, revision_id=revision, position=position, e_value=30.0, at=9.0)
    )
    session.flush()
    fold(session, [RetireEvent(item, lineage, position, revision, 30.0, 9.0)])


def test_rebuilding_derives_the_same(lived_in):
    with lived_in.database.writing() as session:
        result = rebuild(session)
    assert result.same
    assert result.outcomes > 200


def test_rebuilding_repairs_what_was_damaged(lived_in):
    with lived_in.database.reading() as session:
        before = derived_digest(session)
    with lived_in.database.writing() as session:
        session.execute(update(Standing).values(mean=0.123, status="learnable"))
    with lived_in.database.writing() as session:
        assert not rebuild(session).same
    with lived_in.database.reading() as session:
        assert derived_digest(session) == before


def test_a_sound_registry_has_no_findings(lived_in):
    with lived_in.database.reading() as session:
        assert list(look(session, lived_in.blobs, deep=True)) == []


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (delete(StandingTag), "index_missing"),
        (update(StandingTag).values(mean=0.5), "index_stale"),
        (update(Standing).values(folded_to=0), "standing_behind"),
        (delete(Standing).where(Standing.item_id == 1), "standing_missing"),
    ],
    ids=["index-missing", "index-stale", "standing-behind", "standing-missing"],
)
def test_damage_is_found(lived_in, damage, code):
    with lived_in.database.writing() as session:
        session.execute(damage)
    with lived_in.database.reading() as session:
        assert code in {finding.code for finding in look(session, lived_in.blobs)}


def test_a_missing_and_a_damaged_blob_are_found(lived_in, tmp_path):
    first, second = sorted(path for path in (tmp_path / "blobs").rglob("*") if path.is_file())[:2]
    first.unlink()
    second.write_bytes(b"other")
    with lived_in.database.reading() as session:
        shallow = {finding.code for finding in look(session, lived_in.blobs)}
        deep = {finding.code for finding in look(session, lived_in.blobs, deep=True)}
    assert (shallow, deep) == ({"blob_missing"}, {"blob_missing", "blob_corrupt"})


def test_an_archive_read_elsewhere_is_the_same_registry(lived_in, tmp_path, make_task, make_record):
    export_archive(lived_in.database, lived_in.blobs, tmp_path / "archive")
    with LocalRegistry(f"sqlite:///{tmp_path}/other/registry.sqlite") as other:
        import_archive(other.database, other.blobs, tmp_path / "archive")
        with lived_in.database.reading() as here, other.database.reading() as there:
            assert derived_digest(here) == derived_digest(there)
        assert other.revision("set") == lived_in.revision("set")
        fresh = make_task("after-import")
        other.push([fresh])
        assert other.append([make_record(fresh, True)]).accepted == 1


def test_an_archive_is_read_into_both_databases(lived_in, registry_url, tmp_path, make_task, request):
    export_archive(lived_in.database, lived_in.blobs, tmp_path / "archive")
    url = (
        f"sqlite:///{tmp_path}/third.sqlite"
        if "sqlite" in registry_url
        else request.getfixturevalue("postgres_template")()
    )
    with LocalRegistry(url, blobs_url=str(tmp_path / "third")) as other:
        import_archive(other.database, other.blobs, tmp_path / "archive")
        other.push([make_task("new-ids-go-on")])
        assert other.query("new-ids-go-on").total == 1


def test_an_archive_is_read_into_an_empty_registry_only(lived_in, tmp_path):
    export_archive(lived_in.database, lived_in.blobs, tmp_path / "archive")
    with pytest.raises(UsageError) as caught:
        import_archive(lived_in.database, lived_in.blobs, tmp_path / "archive")
    assert caught.value.code == "registry_not_empty"


@pytest.mark.parametrize("content", [None, "{", '{"format": 99}'])
def test_a_folder_that_is_no_archive_is_refused(registry, tmp_path, content):
    if content is not None:
        (tmp_path / "archive.json").write_text(content)
    with pytest.raises(UsageError) as caught:
        import_archive(registry.database, registry.blobs, tmp_path)
    assert caught.value.code == "bad_archive"


def test_nothing_is_exported_over_something(registry, tmp_path):
    (tmp_path / "kept").write_text("x")
    with pytest.raises(UsageError) as caught:
        export_archive(registry.database, registry.blobs, tmp_path)
    assert caught.value.code == "destination_exists"


def test_a_backup_of_a_registry_in_use_is_a_registry(sqlite_registry, make_task, make_record, tmp_path):
    task = make_task("a")
    sqlite_registry.push([task])
    sqlite_registry.append([make_record(task, True)])
    path = back_up(sqlite_registry.database, sqlite_registry.blobs, tmp_path / "backup")
    sqlite_registry.append([make_record(task, True)])
    with LocalRegistry(f"sqlite:///{path}") as copy:
        assert copy.query("").items[0].n == 1
        assert copy.fetch(task.digests.task, task.digests.verifier, tmp_path / "out").slug == "a"


@pytest.mark.postgres
def test_a_servers_database_is_not_backed_up_as_a_file(postgres_template, tmp_path):
    with (
        LocalRegistry(postgres_template(), blobs_url=str(tmp_path / "blobs")) as registry,
        pytest.raises(UsageError) as caught,
    ):
        back_up(registry.database, registry.blobs, tmp_path / "backup")
    assert caught.value.code == "not_embedded"

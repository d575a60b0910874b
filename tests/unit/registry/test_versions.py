"""Weight versions of several runs of one lineage: evidence fades by whichever goes on, and a rebuild derives the same."""

from __future__ import annotations

import pytest
from alembic import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from registry.acceptance import _INTEGER
from registry.db import VersionCount
from registry.db.schema import bring_up_to_date, config_for
from registry.derive.rebuild import rebuild
from registry.derive.versions import VersionCounts
from registry.integrity import look
from registry.saturation.posterior import DECAY


@pytest.fixture
def task(registry, make_task, make_report):
    made = make_task("a")
    registry.push([made], [make_report(made)])
    return made


def counts(registry, task):
    """Decayed passes and trials, and the version, of the only lineage."""
    pair = (task.digests.task, task.digests.verifier)
    found = registry.posteriors([pair])[pair]
    k, n = found.alpha - found.prior_alpha, found.alpha + found.beta - found.prior_alpha - found.prior_beta
    return pytest.approx((k, n)), found.weight_version


def sound(registry):
    with registry.database.writing() as session:
        assert list(look(session, registry.blobs)) == []
        return rebuild(session).same


def test_the_updates_of_a_second_run_fade_what_the_first_one_left(registry, task, make_record):
    registry.append([make_record(task, True, version=0), make_record(task, True, version=40)], run="first")
    registry.append([make_record(task, False, version=0)], run="second")
    first = DECAY**40 + 1.0
    assert counts(registry, task) == ((first, first + 1.0), 40)
    registry.append([make_record(task, False, version=5)], run="second")
    assert counts(registry, task) == ((first * DECAY**5, (first + 1.0) * DECAY**5 + 1.0), 45)
    assert sound(registry)


def test_a_run_that_goes_on_from_another_ones_model_keeps_its_numbers(registry, task, make_record):
    registry.append([make_record(task, True, version=4)], run="first")
    registry.append([make_record(task, True, version=4), make_record(task, True, version=6)], run="second")
    assert counts(registry, task) == ((2.0 * DECAY**2 + 1.0, 2.0 * DECAY**2 + 1.0), 6)


def test_a_run_whose_first_version_is_newer_makes_up_for_the_updates_between(registry, task, make_record):
    registry.append([make_record(task, True, version=1)], run="first")
    registry.append([make_record(task, True, version=11)], run="later")
    assert counts(registry, task)[1] == 11
    assert sound(registry)


def test_measuring_the_first_model_again_fades_nothing(registry, task, make_record):
    registry.append([make_record(task, True, version=20)], run="training")
    for name in ("calibrate-1", "calibrate-2"):
        registry.append([make_record(task, False, version=0)], run=name)
    assert counts(registry, task) == ((1.0, 3.0), 20)


def test_runs_side_by_side_fade_by_the_one_that_is_ahead(registry, task, make_record):
    registry.append([make_record(task, True, version=0)], run="one")
    registry.append([make_record(task, True, version=0)], run="two")
    for version in range(1, 5):
        registry.append([make_record(task, True, version=version)], run="one")
        registry.append([make_record(task, True, version=version)], run="two")
    expected = 0.0
    for _ in range(5):
        expected = expected * DECAY + 2.0
    assert counts(registry, task) == ((expected, expected), 4)
    assert sound(registry)


def test_versions_of_no_run_are_taken_as_they_are_told(registry, task, make_record):
    registry.append([make_record(task, True, version=9)], run="first")
    registry.append([make_record(task, True, version=0), make_record(task, True, version=3)])
    assert counts(registry, task) == ((3.0, 3.0), 9)
    assert sound(registry)


def test_a_task_that_the_second_run_alone_met_fades_by_its_updates(registry, make_task, make_report, make_record):
    old, new = make_task("old"), make_task("new")
    registry.push([old, new], [make_report(old), make_report(new)])
    registry.append([make_record(old, True, version=30)], run="first")
    registry.append([make_record(new, True, version=0), make_record(new, True, version=1)], run="second")
    assert counts(registry, new) == ((DECAY + 1.0, DECAY + 1.0), 31)
    assert counts(registry, old) == ((1.0, 1.0), 30)


def test_the_largest_version_that_is_taken_breaks_no_later_run(registry, task, make_record):
    registry.append([make_record(task, True, version=_INTEGER - 1)], run="odd")
    registry.append([make_record(task, True, version=version) for version in (0, 7)], run="next")
    assert counts(registry, task)[1] == _INTEGER - 1


SENT = st.lists(st.tuples(st.sampled_from(["", "one", "two", "three"]), st.integers(0, 6), st.booleans()), max_size=12)


@given(SENT)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_however_runs_arrive_a_rebuild_derives_the_same(registry, task, make_record, sent):
    for run, version, passed in sent:
        registry.append([make_record(task, passed, version=version)], run=run)
    assert sound(registry)


def test_a_run_counts_alike_in_one_batch_and_in_many(sqlite_registry, make_task, make_report, make_record):
    one, many = make_task("one"), make_task("many")
    sqlite_registry.push([one, many], [make_report(one), make_report(many)])
    versions = [0, 3, 2, 7, 7, 1]
    sqlite_registry.append([make_record(one, True, version=v, lineage="x") for v in versions], run="a")
    for version in versions:
        sqlite_registry.append([make_record(many, True, version=version, lineage="y")], run="b")
    found = {
        lineage: sqlite_registry.posteriors([(task.digests.task, task.digests.verifier)], lineage=lineage)
        for lineage, task in (("x", one), ("y", many))
    }
    [x], [y] = found["x"].values(), found["y"].values()
    assert (x.alpha, x.beta, x.weight_version) == (y.alpha, y.beta, y.weight_version)


def test_what_is_counted_is_known_to_the_next_transaction(sqlite_registry, make_task, make_record):
    task = make_task("a")
    sqlite_registry.push([task])
    sqlite_registry.append([make_record(task, True, version=5)], run="a")
    with sqlite_registry.database.reading() as session:
        assert VersionCounts(session).counted(1, 99, 2) == 5
        assert VersionCounts(session).counted(1, 1, 2) == 2
        assert VersionCounts(session).counted(None, 1, 2) == 2


@pytest.mark.parametrize(
    "damage", [delete(VersionCount), update(VersionCount).values(newest=99)], ids=["missing", "wrong"]
)
def test_a_damaged_count_is_found_and_rebuilt(registry, task, make_record, damage):
    registry.append([make_record(task, True, version=5)], run="a")
    with registry.database.writing() as session:
        session.execute(damage)
    with registry.database.reading() as session:
        [finding] = look(session, registry.blobs)
    assert (finding.code, finding.where) == ("count_stale", "lineage small, run a")
    with registry.database.writing() as session:
        assert not rebuild(session).same
    assert sound(registry)


def test_runs_of_before_the_migration_keep_their_versions_until_a_rebuild(registry, task, make_record):
    registry.append([make_record(task, True, version=5)], run="first")
    registry.append([make_record(task, True, version=0), make_record(task, True, version=2)], run="second")
    command.downgrade(config_for(registry.database.engine), "0003")
    bring_up_to_date(registry.database.engine)
    registry.append([make_record(task, True, version=3)], run="second")
    assert counts(registry, task)[1] == 7
    with registry.database.writing() as session:
        assert not rebuild(session).same
    assert counts(registry, task)[1] == 8
    assert sound(registry)

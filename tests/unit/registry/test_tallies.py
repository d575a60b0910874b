"""What lineages and runs have is counted as it arrives, and counting it all again gives the same."""

from __future__ import annotations

import json
from dataclasses import astuple

import pytest
from alembic import command
from sqlalchemy import event, select, update

from registry.archive import export_archive, import_archive
from registry.db import Lineage, Run
from registry.db.engine import open_database
from registry.db.schema import config_for
from registry.derive.rebuild import rebuild
from registry.derive.tallies import recount
from registry.integrity import look
from registry.local import LocalRegistry
from registry.web.pages.policies import _policies
from registry.web.pages.runs import _runs

LINEAGE = ("name", "episodes", "graded", "newest_version", "last_at")
RUN = ("name", "successes", "failures", "infra_failures", "unknown", "graded", "reward_sum")


def rows(registry, model, names):
    with registry.database.reading() as session:
        return [
            tuple(row) for row in session.execute(select(*(getattr(model, name) for name in names)).order_by(model.id))
        ]


@pytest.fixture
def counted(registry, make_task, make_report, make_record):
    """Two lineages and an oracle, in two runs and in none, sent in several batches; versions and clocks go back."""
    task = make_task("a")
    registry.push([task], [make_report(task)])
    registry.append([make_record(task, True, version=3, started_at=50.0)], run="first")
    registry.append([make_record(task, False, version=1, started_at=40.0)], run="first")
    registry.append([make_record(task, None)], run="first")
    registry.append(
        [make_record(task, True, lineage="large", started_at=70.0), make_record(task, True, lineage="oracle")]
    )
    registry.append([make_record(task, True, lineage="large", version=2, started_at=60.0)], run="second")
    return registry


def test_lineages_are_counted_with_their_newest_version_and_time(counted):
    found = {name: rest for name, *rest in rows(counted, Lineage, LINEAGE)}
    assert found["small"][:3] == [3, 2, 3]
    assert found["large"] == [2, 2, 2, 70.0]
    assert set(found) == {"small", "large"}


def test_runs_are_counted_by_class(counted):
    assert rows(counted, Run, RUN) == [("first", 1, 1, 1, 0, 2, 1.0), ("second", 1, 0, 0, 0, 1, 1.0)]


def test_the_same_episodes_again_change_no_count(counted, make_record, make_task):
    before = rows(counted, Lineage, LINEAGE), rows(counted, Run, RUN)
    again = [make_record(make_task("a"), True, episode_id="again")]
    counted.append(again, run="first")
    counted.append(again, run="first")
    after = rows(counted, Lineage, LINEAGE), rows(counted, Run, RUN)
    assert [row[1] for row in after[0]] == [row[1] + (row[0] == "small") for row in before[0]]
    assert [row[1] for row in after[1]] == [2, 1]


def test_counting_again_gives_the_same(counted):
    before = rows(counted, Lineage, LINEAGE), rows(counted, Run, RUN)
    with counted.database.writing() as session:
        session.execute(update(Lineage).values(episodes=77, newest_version=9))
        session.execute(update(Run).values(successes=5, reward_sum=9.0))
        recount(session)
    assert (rows(counted, Lineage, LINEAGE), rows(counted, Run, RUN)) == before


@pytest.mark.parametrize(
    ("model", "values", "where"), [(Lineage, {"graded": 9}, "lineage"), (Run, {"unknown": 1}, "run")]
)
def test_a_count_that_is_wrong_is_found_and_rebuilt(counted, model, values, where):
    with counted.database.writing() as session:
        session.execute(update(model).where(model.id == 1).values(**values))
    with counted.database.reading() as session:
        found = [(one.code, one.where.split()[0]) for one in look(session, counted.blobs)]
    assert found == [("tally_stale", where)]
    with counted.database.writing() as session:
        assert not rebuild(session).same
        assert list(look(session, counted.blobs)) == []


def test_the_pages_show_what_is_kept_and_read_no_outcome(counted):
    asked = []
    listener = lambda *arguments: asked.append(arguments[2])  # noqa: E731
    event.listen(counted.database.engine, "before_cursor_execute", listener)
    with counted.database.reading() as session:
        policies, runs = _policies(session), _runs(session)
    event.remove(counted.database.engine, "before_cursor_execute", listener)
    assert not any("outcome" in statement.replace("outcome_class", "") for statement in asked)
    assert [(one["lineage"], one["episodes"], one["graded"]) for one in policies] == [("small", 3, 2), ("large", 2, 2)]
    assert [(one["name"], one["episodes"], one["mean_reward"]) for one in runs] == [
        ("second", 1, 1.0),
        ("first", 3, 0.5),
    ]
    assert runs[1]["outcomes"] == {"model_success": 1, "model_failure": 1, "infra_failure": 1}
    assert runs[1]["coverage"] == pytest.approx(2 / 3)


def test_a_registry_from_before_there_were_counts_is_counted_when_it_is_opened(counted):
    before = rows(counted, Lineage, LINEAGE), rows(counted, Run, RUN)
    command.downgrade(config_for(counted.database.engine), "0002")
    open_database(counted.url).close()
    assert (rows(counted, Lineage, LINEAGE), rows(counted, Run, RUN)) == before
    command.check(config_for(counted.database.engine))
    with counted.database.reading() as session:
        assert list(look(session, counted.blobs)) == []


def test_an_archive_from_before_there_were_counts_is_read(counted, tmp_path):
    place = tmp_path / "archive"
    export_archive(counted.database, counted.blobs, place)
    for table, kept in (
        ("lineage", {"id", "name", "is_reference", "created_at"}),
        ("run", {"id", "name", "created_at"}),
    ):
        path = place / "tables" / f"{table}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({name: row[name] for name in kept}) + "\n" for row in lines))
    head = json.loads((place / "archive.json").read_text())
    (place / "archive.json").write_text(json.dumps(head | {"format": 1}))
    with LocalRegistry(f"sqlite:///{tmp_path}/other.sqlite") as other:
        assert import_archive(other.database, other.blobs, place).outcomes == 6
        assert (rows(other, Lineage, LINEAGE), rows(other, Run, RUN)) == (
            rows(counted, Lineage, LINEAGE),
            rows(counted, Run, RUN),
        )
        with other.database.reading() as session:
            assert [astuple(one) for one in look(session, other.blobs)] == []

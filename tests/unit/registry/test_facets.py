"""Counts beside the search box: exact while small, bounded when large, in the order of a task's life."""

from __future__ import annotations

import pytest

from registry.query.facets import StatusCount, status_counts
from registry.query.sql import find_lineage


@pytest.fixture
def counts(registry, make_task, make_report, make_record):
    """Reads the counts of a registry with three learnable, two too hard tasks and a draft."""
    learnable = [make_task(f"mixed-{n}") for n in range(3)]
    hard = [make_task(f"hard-{n}") for n in range(2)]
    registry.push([*learnable, *hard, make_task("new")], [make_report(task) for task in learnable + hard])
    registry.append([make_record(task, bool(n % 2)) for task in learnable for n in range(4)])
    registry.append([make_record(task, False) for task in hard for _ in range(12)])

    def read():
        with registry.database.reading() as session:
            return status_counts(session, find_lineage(session, None))

    return read


def test_states_that_occur_are_counted_and_no_others(counts):
    assert counts() == [
        StatusCount("draft", 1, more=False),
        StatusCount("learnable", 3, more=False),
        StatusCount("too_hard", 2, more=False),
    ]


@pytest.mark.parametrize("bound", [1, 2])
def test_a_state_with_more_than_the_bound_says_so(counts, monkeypatch, bound):
    monkeypatch.setattr("registry.query.facets.COUNT_TO", bound)
    found = {one.status: one for one in counts()}
    assert found["learnable"] == StatusCount("learnable", bound, more=True)
    assert found["draft"] == StatusCount("draft", 1, more=False)
    assert found["too_hard"].more == (bound < 2)


def test_a_registry_without_tasks_has_no_counts(registry):
    with registry.database.reading() as session:
        assert status_counts(session, find_lineage(session, None)) == []


def test_counts_are_of_one_policy(registry, make_task, make_report, make_record):
    task = make_task("a")
    registry.push([task], [make_report(task)])
    registry.append([make_record(task, bool(n % 2), lineage="small") for n in range(4)])
    registry.append([make_record(task, False, lineage="large") for _ in range(12)])
    with registry.database.reading() as session:
        large = status_counts(session, find_lineage(session, None) + 1)
    assert [one.status for one in large] == ["too_hard"]

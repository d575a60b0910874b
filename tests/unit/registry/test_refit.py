"""Priors from how other policies did: leave-one-out, only with enough of them, and rebuildable."""

from __future__ import annotations

import random

import pytest

from registry.calibration.job import give_priors
from registry.calibration.refit import MOST_EPISODES, refit
from registry.derive.rebuild import rebuild


@pytest.fixture
def measured(registry, make_task, make_report, make_record):
    """Three easy, three middling and three hard tasks, tried by four policies; the last one skipped one of each."""
    rng = random.Random(2)
    tasks = [make_task(f"task-{n}") for n in range(9)]
    registry.push(tasks, [make_report(task) for task in tasks])
    rates = [0.95] * 3 + [0.5] * 3 + [0.05] * 3
    for policy in ("a", "b", "c", "d"):
        skipped = {0, 3, 6} if policy == "d" else set()
        registry.append(
            [
                make_record(tasks[n], rng.random() < rates[n], lineage=policy)
                for n in range(9)
                if n not in skipped
                for _ in range(8)
            ]
        )
    return registry


def means(registry, policy):
    return {item.slug: (item.p, item.n) for item in registry.query(f"policy:{policy}").items}


def run(registry):
    with registry.database.writing() as session:
        return refit(session)


def test_tasks_a_policy_never_met_get_a_prior_from_the_others(measured):
    before = means(measured, "d")
    result = run(measured)
    after = means(measured, "d")
    assert (result.lineages, result.items, result.priors) == (4, 9, 36)
    assert before["task-0"] == before["task-6"] == (pytest.approx(0.15 / 0.38), 0)
    assert after["task-0"][0] > 0.7 > 0.3 > after["task-6"][0]
    assert after["task-0"][1] == 0


def test_a_policys_own_outcomes_do_not_shape_its_prior_twice(measured, make_task, make_report, make_record):
    task = make_task("lonely")
    measured.push([task], [make_report(task)])
    measured.append([make_record(task, True, lineage="a") for _ in range(8)])
    run(measured)
    pair = (task.digests.task, task.digests.verifier)
    found = measured.posteriors([pair], lineage="a")[pair]
    assert (found.alpha, found.beta) == (pytest.approx(8.15), pytest.approx(0.23))


def test_a_panel_without_overdispersion_gives_no_prior_that_outcomes_cannot_move(
    registry, make_task, make_report, make_record
):
    tasks = [make_task(f"task-{n}") for n in range(12)]
    registry.push(tasks, [make_report(task) for task in tasks])
    for policy in "abcde":  # every one passes every second episode of every task
        registry.append([make_record(task, n % 2 == 0, lineage=policy) for task in tasks for n in range(32)])
    result = run(registry)
    assert result.overdispersion > 20
    pairs = [(task.digests.task, task.digests.verifier) for task in tasks]
    for found in registry.posteriors(pairs, lineage="a").values():
        assert found.alpha + found.beta == pytest.approx(32 + MOST_EPISODES)


def test_with_too_few_policies_nothing_is_done_and_it_says_why(registry, make_task, make_record):
    task = make_task("a")
    registry.push([task])
    registry.append([make_record(task, True, lineage=policy) for policy in "abc"])
    result = run(registry)
    assert (result.fit_id, result.priors) == (None, 0)
    assert "3" in result.why


def test_priors_are_in_force_again_after_a_rebuild(measured, make_record, tmp_path):
    run(measured)
    item = measured.query("task-3").items[0]
    task = measured.fetch(item.task_digest, item.verifier_digest, tmp_path / "t")
    measured.append([make_record(task, True, lineage="d") for _ in range(4)])
    run(measured)
    with measured.database.writing() as session:
        assert rebuild(session).same


def test_one_lineage_alone_is_given_the_priors_that_it_would_get_with_all(measured):
    with measured.database.writing() as session:
        result = refit(session, lineage="d")
    alone, other = means(measured, "d"), means(measured, "a")
    assert result.priors == 9
    run(measured)
    assert means(measured, "d") == {slug: (pytest.approx(p), n) for slug, (p, n) in alone.items()}
    assert means(measured, "a") != other


def test_a_first_look_is_followed_by_priors_for_that_policy(measured):
    before = means(measured, "d")
    give_priors(measured, "d")
    after = means(measured, "d")
    assert before["task-0"][0] < 0.5 < after["task-0"][0]


def test_where_the_database_is_not_at_hand_no_priors_are_given(measured):
    class Elsewhere:
        url = "http://elsewhere"

    give_priors(Elsewhere(), "d")

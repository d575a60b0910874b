"""Drift: a task that moves alone is flagged, one that moves with its neighbours is not, and its traces are named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from envsdk.errors import UsageError
from registry.calibration.drift import alone, angles, drifted, find_drift
from registry.calibration.report import report_fit
from registry.calibration.responses import read_responses
from registry.cli.app import app

DIFFICULTY = np.linspace(-2, 2, 30)


def test_a_task_that_moves_alone_drifted_and_one_that_moves_with_all_did_not():
    before, se = -DIFFICULTY, np.full(30, 0.2)
    assert drifted(before, before + 3.0, se, DIFFICULTY) == []
    moved = before.copy()
    moved[11] += 1.5
    assert drifted(before, moved, se, DIFFICULTY) == [11]


def test_a_task_that_falls_alone_drifted_too():
    moved = -DIFFICULTY
    moved[3] -= 1.5
    assert drifted(-DIFFICULTY, moved, np.full(30, 0.2), DIFFICULTY) == [3]


def test_an_uncertain_move_is_none():
    moved = -DIFFICULTY
    moved[3] += 1.5
    assert drifted(-DIFFICULTY, moved, np.full(30, 0.5), DIFFICULTY) == []


def test_a_slope_over_difficulty_is_no_drift():
    """Hard tasks that gain more than easy ones are learning: each moves as its neighbours do."""
    assert drifted(-DIFFICULTY, -DIFFICULTY + DIFFICULTY, np.full(30, 0.2), DIFFICULTY) == []


@pytest.mark.parametrize("tasks", [0, 1, 2])
def test_few_tasks_are_no_fault(tasks):
    zeros = np.zeros(tasks)
    assert drifted(zeros, zeros + 9.0, zeros + 1.0, zeros) == []


def test_ties_in_difficulty_leave_a_task_its_neighbours():
    after = np.zeros(20)
    after[7] = 5.0
    assert drifted(np.zeros(20), after, np.ones(20), np.zeros(20)) == [7]


@given(st.permutations(range(12)))
def test_the_order_of_tasks_changes_nothing(order):
    rng = np.random.default_rng(3)
    before, after, b = rng.normal(0, 1, (3, 12))
    se = np.full(12, 0.3)
    place = np.array(order)
    plain = alone(before, after, se, b)
    assert alone(before[place], after[place], se[place], b[place]) == pytest.approx(plain[place])


@pytest.mark.parametrize(("k", "n"), [(0, 0), (0, 5), (5, 5), (2, 7), (10**9, 10**9)])
def test_angles_lie_in_a_quarter_turn(k, n):
    angle, variance = angles(np.array([float(k)]), np.array([float(n)]))
    assert 0 < angle[0] < np.pi / 2
    assert 0 < variance[0] <= 0.5


@pytest.mark.parametrize("p", [0.5, 0.9, 0.98])
def test_the_variance_of_an_angle_is_what_draws_show(p):
    draws = np.random.default_rng(0).binomial(200, p, 20_000).astype(float)
    angle, variance = angles(draws, np.full(20_000, 200.0))
    assert angle.var() == pytest.approx(variance[0], rel=0.06)


@pytest.fixture
def trained(registry, make_task, make_report, make_record):
    """Twelve tasks that a policy passes half the time at version 0; at version 5 one of them passes always."""
    tasks = [make_task(f"task-{n:02}") for n in range(12)]
    registry.push(tasks, [make_report(task) for task in tasks])
    early = [make_record(task, n % 2 == 0) for task in tasks for n in range(40)]
    late = [
        make_record(task, n % 2 == 0 or task is tasks[4], version=5, episode_id=f"late-{task.slug}-{n}")
        for task in tasks
        for n in range(40)
    ]
    registry.append(early)
    registry.append(late)
    return registry


def found(registry, lineage="small", **options):
    with registry.database.reading() as session:
        return find_drift(session, lineage, **options)


@pytest.mark.parametrize("since", [None, 1, 5])
def test_a_task_that_got_too_good_is_found_with_its_newest_episodes(trained, since):
    result = found(trained, since=since)
    assert (result.tasks, [one.slug for one in result.drifted]) == (12, ["task-04"])
    one = result.drifted[0]
    assert (one.before, one.after) == ((20, 40), (40, 40))
    assert one.moved > 4
    assert one.episodes == ("late-task-04-39", "late-task-04-38", "late-task-04-37")


def test_a_policy_is_compared_with_another(trained, make_task, make_record):
    tasks = [make_task(f"task-{n:02}") for n in range(12)]
    trained.append([make_record(task, n % 2 == 0, lineage="other") for task in tasks for n in range(80)])
    result = found(trained, "other", against="small")
    assert (result.since, result.tasks, result.drifted) == (None, 12, ())


def test_a_version_that_nobody_reached_compares_nothing(trained):
    assert found(trained, since=99).tasks == 0


def test_one_version_cannot_be_compared_with_itself(registry, make_task, make_record):
    task = make_task("a")
    registry.push([task])
    registry.append([make_record(task, True)])
    with pytest.raises(UsageError) as caught:
        found(registry)
    assert caught.value.code == "one_version"


@pytest.mark.parametrize("options", [{"lineage": "nobody"}, {"against": "nobody"}])
def test_an_unknown_policy_is_named(trained, options):
    with pytest.raises(UsageError) as caught:
        found(trained, **options)
    assert caught.value.code == "unknown_policy"
    assert "nobody" in caught.value.message


def test_the_command_flags_and_exits_with_1(trained):
    result = CliRunner().invoke(app, ["drift", "small", "--json", "--registry", trained.url])
    body = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [(flag["flag"], flag["slug"]) for flag in body["flags"]] == [("drifted", "task-04")]
    assert body["since"] == 5


def test_the_command_exits_with_0_where_nothing_moved(trained):
    result = CliRunner().invoke(app, ["drift", "small", "--since", "99", "--registry", trained.url])
    assert result.exit_code == 0


@pytest.fixture
def responses(tmp_path):
    """Three models on twenty tasks; ``new`` passes one of them always that ``old`` passed seldom."""
    lines = ["model,task,trials,passes"]
    for task in range(20):
        lines += [f"old,t{task},64,{task * 3}", f"other,t{task},64,{task * 3 + 2}"]
        lines.append(f"new,t{task},64,{64 if task == 5 else min(64, task * 3 + 3)}")
    path = tmp_path / "responses.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_table_of_responses_shows_drift_between_two_models(responses):
    flags = report_fit(read_responses(responses), between=("old", "new")).flags
    assert [(one.task, one.why[:14]) for one in flags if one.flag == "drifted"] == [("t5", "15/64 to 64/64")]


def test_without_two_models_nothing_is_called_drifted(responses):
    assert all(one.flag != "drifted" for one in report_fit(read_responses(responses)).flags)


def test_a_model_that_is_not_in_the_table_is_an_error(responses):
    result = CliRunner().invoke(app, ["fit", str(responses), "--between", "old", "newer", "--json"])
    assert result.exception is not None or result.exit_code == 2

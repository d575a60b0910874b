"""From a query to tasks on this machine, over a real embedded registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.authoring import find_tasks
from envsdk.checks.report import CheckReport, CheckResult
from envsdk.episode.record import PolicyId
from envsdk.errors import FaultyError, UsageError
from registry.client import open_registry
from tests.fakes.episodes import make_draw, make_record, scored
from trainer import task_set
from trainer.group import Member

# In a file of its own: the project's pytest plugin collects what a test module declares.
MODULE = '''
from envsdk import Draw, task, verifier

@verifier
def says_yes(answer: str) -> float:
    """1 for yes."""
    return float(answer == "yes")

@task(verifier=says_yes)
def first_question() -> Draw:
    """Say yes."""
    return Draw(instruction="Say yes.", oracle="yes")

@task(verifier=says_yes)
def second_question() -> Draw:
    """Say yes again."""
    return Draw(instruction="Say yes again.", oracle="yes")
'''


@pytest.fixture
def registry(tmp_path: Path):
    module = tmp_path / "questions.py"
    module.write_text(MODULE)
    tasks = find_tasks(module, tmp_path / "drawn")
    reports = [
        CheckReport(
            slug=one.slug,
            task_digest=one.digests.task,
            verifier_digest=one.digests.verifier,
            verdict="pass",
            complete=True,
            checks=(CheckResult(check="oracle", outcome="pass"),),
        )
        for one in tasks[:1]
    ]
    with open_registry(f"sqlite:///{tmp_path / 'registry.sqlite'}") as client:
        client.push(tasks, reports)
        yield client


def test_a_query_is_pinned_once_and_its_revision_finds_the_same_tasks(registry) -> None:
    name, digest, pairs = task_set.pin(registry, query="question")
    again, same, pinned = task_set.pin(registry, revision=name)
    assert (again, same, pinned) == (name, digest, pairs)
    assert len(pairs) == 1


def test_tasks_without_a_complete_report_do_not_enter_and_an_empty_set_says_who_was_left_out(registry) -> None:
    with pytest.raises(FaultyError, match="draft") as caught:
        task_set.pin(registry, query="again")
    assert caught.value.code == "empty_query"


def test_a_revision_that_does_not_exist_is_a_usage_error(registry) -> None:
    with pytest.raises(UsageError):
        task_set.pin(registry, revision="nothing@3")


def test_files_are_fetched_once_and_load_as_the_tasks_they_are(registry, tmp_path: Path) -> None:
    _, _, pairs = task_set.pin(registry, query="question")
    first = task_set.fetch(registry, pairs, tmp_path / "tasks")
    marks = {path: path.stat().st_mtime_ns for path in (tmp_path / "tasks").rglob("*")}
    second = task_set.fetch(registry, pairs, tmp_path / "tasks")
    assert [one.digests for one in first] == [one.digests for one in second]
    assert (first[0].digests.task, first[0].digests.verifier) == pairs[0]
    assert marks == {path: path.stat().st_mtime_ns for path in (tmp_path / "tasks").rglob("*")}


def test_a_sampler_starts_from_what_the_registry_believes(registry, tmp_path: Path) -> None:
    _, _, pairs = task_set.pin(registry, query="question")
    tasks = task_set.fetch(registry, pairs, tmp_path / "tasks")
    made = task_set.sampler(registry, tasks, lineage="never measured", version=0, seed=1)
    assert made.draw().digests == tasks[0].digests
    assert 0 < made.learnability(tasks[0].digests.task) < 0.25


def test_a_samplers_prior_and_counts_are_the_registrys_and_stand_apart(registry, tmp_path: Path) -> None:
    _, _, pairs = task_set.pin(registry, query="question")
    tasks = task_set.fetch(registry, pairs, tmp_path / "tasks")
    registry.append([passed_by("m", tasks[0], number, version=7) for number in range(3)])
    made = task_set.sampler(registry, tasks, lineage="m", version=0, seed=1)
    kept = made.state()["beliefs"][tasks[0].digests.task]
    found = registry.posteriors(pairs, lineage="m")[pairs[0]]
    assert (kept["alpha"], kept["beta"]) == (found.prior_alpha, found.prior_beta)
    assert (kept["passes"], kept["failures"], kept["version"]) == pytest.approx((3.0, 0.0, 0))


def test_a_second_run_of_a_model_outgrows_what_the_first_ones_last_weights_did(registry, tmp_path: Path) -> None:
    _, _, pairs = task_set.pin(registry, query="question")
    tasks = task_set.fetch(registry, pairs, tmp_path / "tasks")
    registry.append([passed_by("m", tasks[0], number, version=50) for number in range(30)])
    made = task_set.sampler(registry, tasks, lineage="m", version=0, seed=1)
    for version in range(20):
        made.observe(tasks[0].digests.task, passed=0, graded=8, version=version)
    kept = made.state()["beliefs"][tasks[0].digests.task]
    assert kept["passes"] < 0.15 * 30


def passed_by(model: str, task, number: int, *, version: int):
    made = make_record(Member(make_draw(number), 0, 0), scored(1.0), version=version)
    return made.model_copy(
        update={
            "task_digest": task.digests.task,
            "verifier_digest": task.digests.verifier,
            "policy": PolicyId(model=model),
        }
    )

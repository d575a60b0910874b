"""A fresh registry on each database, and makers of tasks, reports and ended episodes."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from envsdk.checks.report import CheckReport, CheckResult
from envsdk.episode.record import EpisodeRecord, Outcome, PhaseTimes, PolicyId
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.model import AgentSpec, ContainerSpec, Task, TaskSpec, VerifierSpec
from registry.db.engine import open_database
from registry.local import LocalRegistry


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[Callable[[], str]]:
    """Makes databases that are copies of one that was migrated once."""
    admin = os.environ["ENVSDK_TEST_POSTGRES"]
    base = admin.rsplit("/", 1)[0]
    template = f"envsdk_{uuid.uuid4().hex}"
    made = [template]
    with psycopg.connect(admin.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {template}")
        open_database(f"{base}/{template}").close()

        def copy() -> str:
            name = f"envsdk_{uuid.uuid4().hex}"
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
            made.append(name)
            return f"{base}/{name}"

        yield copy
        for name in reversed(made):
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def new_database(request: pytest.FixtureRequest, folder: Path) -> str:
    """The URL of an empty database of the kind that the fixture's parameter names."""
    if request.param == "sqlite":
        return f"sqlite:///{folder}/registry.sqlite"
    return request.getfixturevalue("postgres_template")()


@pytest.fixture(params=BOTH)
def registry_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, one of each kind."""
    return new_database(request, tmp_path)


@pytest.fixture
def registry(registry_url: str, tmp_path: Path) -> Iterator[LocalRegistry]:
    with LocalRegistry(registry_url, blobs_url=str(tmp_path / "blobs")) as opened:
        yield opened


@pytest.fixture(scope="module", params=BOTH)
def module_registry(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalRegistry]:
    """One registry for the tests of a file that only read."""
    folder = tmp_path_factory.mktemp("registry")
    with LocalRegistry(new_database(request, folder), blobs_url=str(folder / "blobs")) as opened:
        yield opened


@pytest.fixture
def sqlite_registry(tmp_path: Path) -> Iterator[LocalRegistry]:
    with LocalRegistry(f"sqlite:///{tmp_path}/only.sqlite") as opened:
        yield opened


@pytest.fixture(scope="session")
def make_task(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Task]:
    """Writes small valid tasks; equal arguments give equal digests."""
    number = itertools.count()
    folder = tmp_path_factory.mktemp("tasks")

    def make(slug: str, *, tags: tuple[str, ...] = (), family: str = "", verifier: str = "1", **spec: object) -> Task:
        files = {
            "tests/test.sh": FileContent(f"#!/bin/sh\necho {verifier} > /logs/verifier/reward.txt\n".encode(), True),
            "environment/Dockerfile": FileContent(b"FROM envsdk-base:bookworm\n"),
        }
        wanted = {"instruction": f"Do {slug}.\n", "tags": tags, "family": family, "container": ContainerSpec()} | spec
        return dump_task(TaskSpec(slug=slug, **wanted), files, folder / str(next(number)) / slug)

    return make


@pytest.fixture(scope="session")
def make_text_task(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Task]:
    """Writes tasks whose right answer is ``yes``, judged without a sandbox."""
    number = itertools.count()
    folder = tmp_path_factory.mktemp("texts")
    verifier = b"def is_right(answer, **_):\n    return float(answer.strip() == 'yes')\n"

    def make(slug: str) -> Task:
        spec = TaskSpec(
            slug=slug,
            instruction=f"Say yes to {slug}.\n",
            agent=AgentSpec(protocol="answer"),
            verifier=VerifierSpec(kind="text", entry="tests/verifier.py::is_right"),
            artifacts=("/app/answer.txt",),
        )
        return dump_task(spec, {"tests/verifier.py": FileContent(verifier)}, folder / str(next(number)) / slug)

    return make


@pytest.fixture(scope="session")
def make_report() -> Callable[..., CheckReport]:
    """Makes check reports; by default complete and passing."""

    def make(task: Task, *, complete: bool = True, **outcomes: str) -> CheckReport:
        found = {"oracle": "pass", "noop": "pass"} | outcomes
        verdict = "fail" if "fail" in found.values() else "pass"
        return CheckReport(
            slug=task.slug,
            task_digest=task.digests.task,
            verifier_digest=task.digests.verifier,
            verdict=verdict,
            complete=complete,
            checks=tuple(CheckResult(check=name, outcome=outcome) for name, outcome in found.items()),
        )

    return make


@pytest.fixture(scope="session")
def make_record() -> Callable[..., EpisodeRecord]:
    """Makes ended episodes: ``passed`` `None` is one that the machinery failed."""
    number = itertools.count()

    def make(
        task: Task,
        passed: bool | None,
        *,
        version: int = 0,
        lineage: str = "small",
        cause: str = "",
        episode_id: str = "",
        **changed: object,
    ) -> EpisodeRecord:
        count = next(number)
        graded = passed is not None
        outcome = Outcome(
            outcome_class={True: "model_success", False: "model_failure", None: "infra_failure"}[passed],
            cause=cause or ("finished" if graded else "host_lost"),
            reward=float(passed) if graded else None,
            graded=graded,
            in_gradient=graded,
            in_baseline=graded,
            redispatch=not graded,
            counts_in_eval=graded,
        )
        fields = {
            "episode_id": episode_id or f"episode-{count}",
            "slug": task.slug,
            "task_digest": task.digests.task,
            "verifier_digest": task.digests.verifier,
            "policy": PolicyId(model=lineage, lineage=lineage),
            "weight_version_oldest": version,
            "weight_version_newest": version,
            "outcome": outcome,
            "times": PhaseTimes(total_s=1.5),
            "started_at": 1_000.0 + count,
        }
        return EpisodeRecord(**(fields | changed))

    return make

"""A server's clock that runs back an hour: nothing lost, nothing doubled, nothing stuck until the hour has passed again."""

from __future__ import annotations

import asyncio
import time

import pytest
from starlette.testclient import TestClient

from registry.api.guard import FAILURES_A_MINUTE, WRITES_A_MINUTE
from registry.calibration.refit import refit
from registry.derive.rebuild import rebuild
from registry.integrity import look
from registry.jobs import LEASE_S, claim, enqueue, find_job, renew
from registry.tokens import create_token, list_tokens
from registry.web.app import create_app
from registry.web.formats import ago
from registry.worker import serve_jobs

HOUR_S = 3_600.0


@pytest.fixture
def clock(monkeypatch):
    """Moves the clock by so many seconds; everything that reads it sees it."""
    real, moved = time.time, 0.0

    def move(seconds):
        nonlocal moved
        moved += seconds

    monkeypatch.setattr(time, "time", lambda: real() + moved)
    return move


@pytest.fixture
def task(registry, make_task, make_report):
    made = make_task("a", tags=("x",))
    registry.push([made], [make_report(made)])
    return made


def test_everything_that_happens_after_it_is_kept_in_its_order(
    registry, task, clock, make_task, make_report, make_record
):
    for lineage in ("small", "two", "three", "four"):
        registry.append([make_record(task, n % 2 == 0, lineage=lineage) for n in range(8)], run=f"before-{lineage}")
    registry.resolve("", name="mine")
    clock(-HOUR_S)
    other = make_task("b")
    registry.push([other], [make_report(other)])
    registry.append([make_record(task, True, started_at=time.time()) for _ in range(40)], run="after")
    with registry.database.writing() as session:
        assert refit(session).priors
    registry.append([make_record(other, True)], run="after")
    assert registry.resolve("", name="mine").revision == 2
    with registry.database.writing() as session:
        assert list(look(session, registry.blobs)) == []
        result = rebuild(session)
    assert (result.same, result.outcomes) == (True, 73)
    with TestClient(create_app(registry)) as client:
        changes = client.get("/tasks/a.json").json()["changes"]
        assert changes[0]["after"] == registry.query("tag:x").items[0].status
        pages = ["/tasks", "/tasks/a", "/sets", "/sets/mine", "/sets/mine/1", "/sets/mine/diff", "/runs", "/policies"]
        for page in [*pages, "/sets/mine/feed.atom", "/tasks.csv"]:
            assert client.get(page).status_code == 200, page
        assert client.get("/runs.json").json()["runs"][0]["name"] == "after"


def test_a_moment_that_lies_ahead_is_told_so():
    assert ago(1_000.0 + HOUR_S, now=1_000.0) == "in the future"


def test_a_lease_of_before_holds_nothing_once_its_worker_is_dead(registry, clock):
    with registry.database.writing() as session:
        job = enqueue(session, "refresh", {})
        claim(session, "dead")
    clock(-HOUR_S)
    with registry.database.writing() as session:
        assert claim(session, "next").id == job.id
        assert not renew(session, job.id, "dead", {})


def test_a_lease_that_its_worker_renews_is_kept(registry, clock):
    with registry.database.writing() as session:
        job = enqueue(session, "refresh", {})
        claim(session, "alive")
    clock(-HOUR_S)
    with registry.database.writing() as session:
        assert renew(session, job.id, "alive", {})
        assert claim(session, "other") is None
        assert find_job(session, job.id).attempts == 1


def test_workers_whose_clocks_differ_a_little_leave_each_other_their_jobs(registry):
    with registry.database.writing() as session:
        enqueue(session, "refresh", {})
        claim(session, "ahead", now=1_000.0 + LEASE_S / 2)
        assert claim(session, "behind", now=1_000.0) is None


def test_a_job_that_is_under_way_is_done_once(registry, clock):
    begun = []

    async def work(_registry, arguments, _folder, _tell):
        begun.append(arguments)
        clock(-HOUR_S)
        return {"tasks": 0, "episodes": 0, "fixed": 0}

    with registry.database.writing() as session:
        job = enqueue(session, "calibrate", {})
    asyncio.run(serve_jobs(registry, works={"calibrate": work}, forever=False))
    with registry.database.reading() as session:
        found = find_job(session, job.id)
    assert (found.state, len(begun)) == ("done", 1)
    with TestClient(create_app(registry)) as client:
        assert client.get(f"/jobs/{job.id}").status_code == 200


def test_a_token_holds_until_its_day_and_not_past_it(registry, clock):
    with registry.database.writing() as session:
        create_token(session, "t", scopes=("read",), days=1)
    states = []
    for seconds in (-HOUR_S, 24 * HOUR_S - 60, HOUR_S + 61):
        clock(seconds)
        with registry.database.reading() as session:
            states.append(list_tokens(session)[0].state)
    assert states == ["active", "active", "expired"]


def test_requests_of_before_do_not_fill_the_minutes_until_they_come_again(registry, monkeypatch):
    now = time.time()  # it stands still: however slow the machine, all requests are of one minute
    monkeypatch.setattr(time, "time", lambda: now)
    with registry.database.writing() as session:
        secret = create_token(session, "t", scopes=("jobs",)).secret
    good, wrong = ({"Authorization": f"Bearer {one}"} for one in (secret, "reg_wrong"))

    def statuses(client, headers, number):
        return [client.delete("/api/jobs/1", headers=headers).status_code for _ in range(number)]

    with TestClient(create_app(registry)) as client:
        assert statuses(client, good, WRITES_A_MINUTE + 1)[-1] == 429
        now -= HOUR_S
        assert 429 not in statuses(client, good, 10)
        assert statuses(client, wrong, FAILURES_A_MINUTE + 1)[-1] == 429
        now -= HOUR_S
        assert 429 not in statuses(client, good, 10)

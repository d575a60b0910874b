"""Jobs with leases: each done once, taken up again when a worker dies, given up after three."""

from __future__ import annotations

import pytest

from envsdk.errors import UsageError
from registry.jobs import LEASE_S, MAX_ATTEMPTS, cancel, claim, enqueue, find_job, find_open, finish, release, renew


@pytest.fixture
def session(registry):
    with registry.database.writing() as opened:
        yield opened


def test_the_oldest_job_is_claimed_once(session):
    first, second = (enqueue(session, "refresh", {"set": name}) for name in "ab")
    assert [claim(session, "w").id for _ in range(2)] == [first.id, second.id]
    assert claim(session, "w") is None


def test_a_lease_that_is_renewed_is_kept(session):
    job = enqueue(session, "refresh", {})
    claim(session, "one", now=0.0)
    assert renew(session, job.id, "one", {"done": 1}, now=LEASE_S - 1)
    assert claim(session, "two", now=LEASE_S + 1) is None
    assert find_job(session, job.id).progress == {"done": 1}


def test_a_job_whose_worker_died_is_taken_up_again(session):
    job = enqueue(session, "refresh", {})
    claim(session, "dead", now=0.0)
    assert claim(session, "next", now=LEASE_S + 1).id == job.id
    assert not renew(session, job.id, "dead", {}, now=LEASE_S + 2)
    finish(session, job.id, "dead", result={"from": "dead"})
    assert find_job(session, job.id).state == "running"
    finish(session, job.id, "next", result={"from": "next"})
    assert find_job(session, job.id).result == {"from": "next"}


def test_after_three_deaths_a_job_is_failed(session):
    job = enqueue(session, "refresh", {})
    for attempt in range(MAX_ATTEMPTS):
        assert claim(session, "w", now=attempt * (LEASE_S + 1)) is not None
    assert claim(session, "w", now=MAX_ATTEMPTS * (LEASE_S + 1)) is None
    assert find_job(session, job.id).state == "failed"


def test_a_job_that_is_given_back_is_free_at_once_and_costs_no_attempt(session):
    job = enqueue(session, "refresh", {})
    claim(session, "stopped", now=0.0)
    release(session, job.id, "another")
    assert claim(session, "next", now=1.0) is None
    release(session, job.id, "stopped")
    assert claim(session, "next", now=1.0).attempts == 1


def test_an_equal_job_that_has_not_ended_is_found(session):
    job = enqueue(session, "refresh", {"set": "a"})
    enqueue(session, "refresh", {"set": "b"})
    assert find_open(session, "refresh", {"set": "a"}).id == job.id
    assert find_open(session, "calibrate", {"set": "a"}) is None
    cancel(session, job.id)
    assert find_open(session, "refresh", {"set": "a"}) is None


def test_a_cancelled_job_is_nobodys(session):
    job = enqueue(session, "refresh", {})
    claim(session, "w", now=0.0)
    cancel(session, job.id)
    assert not renew(session, job.id, "w", {}, now=1.0)
    finish(session, job.id, "w", result={})
    assert find_job(session, job.id).state == "cancelled"


def test_cancelling_what_has_ended_changes_nothing(session):
    job = enqueue(session, "refresh", {})
    claim(session, "w")
    finish(session, job.id, "w", error="no such set")
    assert (cancel(session, job.id).state, find_job(session, job.id).error) == ("failed", "no such set")


def test_a_key_names_one_job(session):
    first = enqueue(session, "refresh", {"set": "a"}, idempotency_key="k")
    assert enqueue(session, "refresh", {"set": "a"}, idempotency_key="k").id == first.id
    with pytest.raises(UsageError) as caught:
        enqueue(session, "refresh", {"set": "b"}, idempotency_key="k")
    assert caught.value.code == "conflict"


@pytest.mark.parametrize("act", [find_job, cancel])
def test_a_job_that_is_not_there_is_named(session, act):
    with pytest.raises(UsageError) as caught:
        act(session, 99)
    assert caught.value.code == "unknown_job"

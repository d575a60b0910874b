"""The worker: jobs done and ended with what came of them, progress told, cancelled ones dropped."""

from __future__ import annotations

import asyncio

import pytest

from envsdk.errors import StoreError, UsageError
from registry import worker
from registry.calibration.campaign import Campaign
from registry.jobs import MAX_ATTEMPTS, cancel, enqueue, find_job
from registry.worker import WORKS, serve_jobs
from tests.fakes.http_chat import chat_server, said


@pytest.fixture
def ask(sqlite_registry):
    def make(kind="echo", **arguments):
        with sqlite_registry.database.writing() as session:
            return enqueue(session, kind, arguments).id

    return make


def look(registry, number):
    with registry.database.reading() as session:
        return find_job(session, number)


def drain(registry, **works):
    return asyncio.run(serve_jobs(registry, works=works, forever=False))


async def echo(_registry, arguments, folder, tell):
    (folder / "scratch").write_text("x")
    tell({"half": True})
    return dict(arguments)


def test_jobs_are_done_in_order_until_none_is_left(sqlite_registry, ask):
    first, second = ask(a=1), ask(b=2)
    assert drain(sqlite_registry, echo=echo) == 2
    assert [look(sqlite_registry, number).result for number in (first, second)] == [{"a": 1}, {"b": 2}]


def test_an_expected_error_fails_the_job_with_its_code(sqlite_registry, ask):
    async def fails(*_):
        raise UsageError("there is no task set 'x'", code="unknown_set")

    number, after = ask("fails"), ask()
    assert drain(sqlite_registry, fails=fails, echo=echo) == 2
    assert look(sqlite_registry, number).error.startswith("unknown_set: ")
    assert look(sqlite_registry, after).state == "done"


def test_a_defect_fails_its_job_is_told_to_the_log_and_ends_no_worker(sqlite_registry, ask, caplog):
    async def broken(*_):
        raise ZeroDivisionError

    number, after = ask("broken"), ask()
    assert drain(sqlite_registry, broken=broken, echo=echo) == 2
    assert look(sqlite_registry, number).error.startswith("internal_error: ")
    assert look(sqlite_registry, after).state == "done"
    assert "ZeroDivisionError" in caplog.text


def test_an_error_among_several_tasks_at_once_is_told_as_itself(sqlite_registry, ask, caplog):
    async def fails():
        raise StoreError("a blob is gone", code="blob_missing")

    async def at_once(*_):
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())

    number = ask("at_once")
    drain(sqlite_registry, at_once=at_once)
    assert look(sqlite_registry, number).error == "blob_missing: a blob is gone"
    assert caplog.text == ""


def test_a_stopped_worker_gives_its_job_back_for_the_next_at_once(sqlite_registry, ask):
    async def stop_in_the_middle():
        begun = asyncio.Event()

        async def endless(*_):
            begun.set()
            await asyncio.sleep(60)

        working = asyncio.ensure_future(serve_jobs(sqlite_registry, works={"echo": endless}))
        await begun.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    number = ask(a=1)
    for _ in range(MAX_ATTEMPTS + 1):  # being stopped is no death
        asyncio.run(stop_in_the_middle())
    assert look(sqlite_registry, number).state == "queued"
    assert drain(sqlite_registry, echo=echo) == 1
    assert look(sqlite_registry, number).result == {"a": 1}


def test_a_database_that_is_gone_for_a_while_stops_no_worker(sqlite_registry, ask, monkeypatch, caplog):
    monkeypatch.setattr(worker, "_IDLE_S", 0.01)
    claims = iter([StoreError("gone"), StoreError("gone")])
    claim = worker._claim

    def sometimes(*arguments):
        for error in claims:
            raise error
        return claim(*arguments)

    monkeypatch.setattr(worker, "_claim", sometimes)
    number = ask(a=1)
    assert drain(sqlite_registry, echo=echo) == 1
    assert look(sqlite_registry, number).state == "done"
    assert caplog.text.count("trying again: gone") == 2


def test_a_database_that_stays_gone_ends_the_worker_with_its_error(sqlite_registry, monkeypatch):
    monkeypatch.setattr(worker, "LEASE_S", 0.0)
    monkeypatch.setattr(worker, "_IDLE_S", 0.0)

    def gone(*_):
        raise StoreError("gone")

    monkeypatch.setattr(worker, "_claim", gone)
    with pytest.raises(StoreError, match="gone"):
        drain(sqlite_registry)


def test_a_kind_nobody_knows_fails(sqlite_registry, ask):
    number = ask("mystery")
    drain(sqlite_registry)
    assert look(sqlite_registry, number).error.startswith("unknown_job_kind")


def test_progress_is_told_while_it_runs_and_a_cancelled_job_is_dropped(sqlite_registry, ask, monkeypatch):
    monkeypatch.setattr(worker, "_RENEW_S", 0.01)
    seen = {}

    async def endless(_registry, _arguments, _folder, tell):
        tell({"step": 1})
        for _ in range(500):
            if look(sqlite_registry, number).progress:
                break
            await asyncio.sleep(0.01)
        seen.update(look(sqlite_registry, number).progress)
        with sqlite_registry.database.writing() as session:
            cancel(session, number)
        await asyncio.sleep(60)

    number = ask("endless")
    assert drain(sqlite_registry, endless=endless) == 1
    assert seen == {"step": 1}
    assert look(sqlite_registry, number).state == "cancelled"


def test_the_real_jobs_report_a_set_that_is_not_there(sqlite_registry, ask):
    number = ask("refresh", set="nothing")
    asyncio.run(serve_jobs(sqlite_registry, forever=False))
    assert look(sqlite_registry, number).error.startswith("unknown_set")


def test_a_calibration_asked_for_is_done(sqlite_registry, ask, make_text_task, make_report):
    task = make_text_task("a")
    sqlite_registry.push([task], [make_report(task)])
    with chat_server(said("no")) as server:
        number = ask("calibrate", q="", policy=f"openai:{server.url}#tiny")
        asyncio.run(serve_jobs(sqlite_registry, forever=False))
    job = look(sqlite_registry, number)
    assert (job.state, job.result) == ("done", {"tasks": 1, "episodes": 12, "fixed": 32})
    assert sqlite_registry.query("status:too_hard").total == 1


def test_a_refresh_tells_the_episodes_of_all_its_rounds(sqlite_registry, ask, monkeypatch):
    told = []

    async def propose(_registry, _name, *, looked, heard, **_options):
        heard(0, 3)
        first, second = Campaign(tasks=3), Campaign(tasks=2)
        for campaign, episodes in ((first, 4), (first, 36), (second, 8)):
            campaign.episodes = episodes
            looked(campaign)
        return 7, {"retire": [1, 2, 3], "add": [4]}

    monkeypatch.setattr("registry.refresh.job.propose_refresh", propose)

    async def refresh(registry, arguments, folder, tell):
        return await WORKS["refresh"](registry, arguments, folder, lambda given: (told.append(given), tell(given)))

    number = ask("refresh", set="shell")
    drain(sqlite_registry, refresh=refresh)
    assert look(sqlite_registry, number).result == {"proposal": 7, "retire": 3, "add": 1}
    assert told == [{"replacements": 0, "wanted": 3}, {"episodes": 4}, {"episodes": 36}, {"episodes": 44}]

"""The worker: jobs done and ended with what came of them, progress told, cancelled ones dropped."""

from __future__ import annotations

import asyncio

import pytest

from envsdk.errors import UsageError
from registry import worker
from registry.jobs import cancel, enqueue, find_job
from registry.worker import serve_jobs
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


def test_a_defect_fails_the_job_and_is_not_swallowed(sqlite_registry, ask):
    async def broken(*_):
        raise ZeroDivisionError

    number = ask("broken")
    with pytest.raises(ZeroDivisionError):
        drain(sqlite_registry, broken=broken)
    assert look(sqlite_registry, number).state == "failed"


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

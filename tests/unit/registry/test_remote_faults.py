"""The client against a server that falters: what may be sent again is, nothing is doubled, and errors keep their class."""

from __future__ import annotations

import json

import httpx2
import pytest
import stamina
from starlette.testclient import TestClient

from envsdk.cli.envelope import failure, render
from envsdk.errors import EnvsdkError, StoreError, UsageError
from registry.outcomes import BATCH
from registry.remote import RemoteRegistry
from registry.tokens import SCOPES, create_token
from registry.web.app import create_app


class Faltering(httpx2.BaseTransport):
    """Sends requests to an application here, and fails as ``faults`` say, one a request: an answer, or an error.

    ``lost``: the server did the work and its answer never came.
    """

    def __init__(self, server, faults):
        self.server = server
        self.faults = list(faults)
        self.requests = []

    def handle_request(self, request):
        self.requests.append((request.method, request.url.path))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, int):
            return httpx2.Response(fault, text="busy")
        if isinstance(fault, UsageError | StoreError):
            return httpx2.Response(429 if isinstance(fault, UsageError) else 503, content=render(failure(fault)))
        if fault == "refused":
            raise httpx2.ConnectError("refused")
        answer = self.server.request(
            request.method,
            str(request.url.copy_with(scheme="http", host="testserver")),
            content=request.read(),
            headers=dict(request.headers),
        )
        if fault == "lost":
            raise httpx2.ReadError("connection reset")
        return httpx2.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)


@pytest.fixture
def door(registry):
    """Opens a client whose transport fails as told."""
    with registry.database.writing() as session:
        token = create_token(session, "test", scopes=SCOPES).secret
    with TestClient(create_app(registry)) as server, stamina.set_testing(True, attempts=4):

        def opened(*faults):
            return RemoteRegistry("http://testserver", token=token, transport=Faltering(server, faults))

        yield opened


@pytest.fixture
def task(registry, make_task, make_report):
    made = make_task("a", tags=("shell",))
    registry.push([made], [make_report(made)])
    return made


@pytest.mark.parametrize("fault", [429, 502, 503, 504, "refused"])
def test_a_read_is_asked_again(door, task, fault):
    with door(fault, fault) as remote:
        assert remote.query("").total == 1


@pytest.mark.parametrize("fault", [429, 503, "refused", "lost"])
def test_outcomes_are_sent_again_and_counted_once(door, registry, task, make_record, fault):
    records = [make_record(task, n % 2 == 0) for n in range(6)]
    with door(fault) as remote:
        result = remote.append(records, run="r")
    assert result.accepted + result.duplicate == 6
    assert registry.query("").items[0].n == 6


@pytest.mark.parametrize("fault", [503, "lost"])
def test_a_push_is_sent_again_and_is_one_task(door, registry, make_task, make_report, fault):
    made = make_task("b")
    with door(fault) as remote:
        assert [one.slug for one in remote.push([made], [make_report(made)]).pushed] == ["b"]
    assert registry.query("").total == 1
    assert registry.query("").items[0].verified == "checked"


@pytest.mark.parametrize("fault", [503, "lost"])
def test_a_pin_is_sent_again_and_is_one_revision(door, registry, task, fault):
    with door(fault) as remote:
        assert remote.resolve("", name="set").revision == 1
    assert registry.revision("set").revision == 1


def test_a_server_that_stays_away_is_said_after_a_few_tries(door, task):
    with door(*[503] * 9) as remote, pytest.raises(StoreError) as caught:
        remote.query("")
    assert (caught.value.code, caught.value.where) == ("server_unreachable", "http://testserver")


@pytest.mark.parametrize("kind", [StoreError, UsageError])
def test_what_a_busy_server_says_to_the_last_is_what_is_raised(door, task, kind):
    said = kind("the database is away", code="its_own_code", hint="wait", where="there")
    with door(*[said] * 9) as remote, pytest.raises(kind) as caught:
        remote.query("")
    raised = caught.value
    assert (raised.message, raised.code, raised.hint, raised.where) == (said.message, said.code, said.hint, said.where)


def test_a_busy_server_that_recovers_is_never_heard_of(door, task):
    away = StoreError("the database is away", code="its_own_code")
    with door(away, away) as remote:
        assert remote.query("").total == 1


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda remote: remote.query("status:lernable"), "query_bad_value"),
        (lambda remote: remote.revision("nobody"), "unknown_set"),
        (lambda remote: remote.resolve("", name="no name!"), "bad_name"),
        (lambda remote: remote.query("", cursor="bad"), "query_bad_cursor"),
    ],
)
def test_the_callers_mistakes_are_told_once_and_not_tried_again(door, task, ask, code):
    with door() as remote:
        with pytest.raises(UsageError) as caught:
            ask(remote)
        assert len(remote._http._transport.requests) == 1
    assert caught.value.code == code


@pytest.mark.parametrize("body", ["", "<html>", "[]", "3", '{"ok": true}'])
def test_a_server_that_is_no_registry_is_named_so(body):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text=body))
    with RemoteRegistry("http://elsewhere", transport=transport) as remote, pytest.raises(StoreError) as caught:
        remote.query("")
    assert caught.value.code == "not_a_registry"


def test_a_token_without_the_scope_is_told(registry, task, make_record):
    with registry.database.writing() as session:
        token = create_token(session, "test", scopes=("push",)).secret
    with (
        TestClient(create_app(registry)) as server,
        RemoteRegistry("http://testserver", token=token, transport=Faltering(server, [])) as remote,
        pytest.raises(EnvsdkError) as caught,
    ):
        remote.append([make_record(task, True)])
    assert caught.value.code == "token_scope"
    assert registry.query("").items[0].n == 0


def test_many_lines_are_sent_in_bounded_parts_that_keep_their_numbers(door, registry, task, make_record, monkeypatch):
    monkeypatch.setattr("registry.remote.BATCH", 4)
    lines = [make_record(task, True).model_dump_json().encode() for _ in range(9)]
    lines[6] = b"{"
    heard = []
    with door() as remote:
        result = remote.append_lines(lines, progress=lambda so_far: heard.append(so_far.accepted))
        assert len(remote._http._transport.requests) == 3
    assert (result.accepted, [one.which for one in result.rejected]) == (8, ["line 7"])
    assert heard == [4, 7, 8]


def test_an_upload_that_fails_half_way_is_finished_by_sending_it_again(door, registry, task, make_record, monkeypatch):
    monkeypatch.setattr("registry.remote.BATCH", 4)
    records = [make_record(task, True) for _ in range(10)]
    with door(None, *[503] * 9) as remote, pytest.raises(StoreError):
        remote.append(records)
    assert registry.query("").items[0].n == 4
    with door() as remote:
        again = remote.append(records)
    assert (again.accepted, again.duplicate) == (6, 4)
    assert registry.query("").items[0].n == 10


def test_a_task_whose_files_changed_on_the_way_is_refused(door, registry, task, tmp_path, monkeypatch):
    real = RemoteRegistry._ask

    def tampered(self, method, path, **request):
        answer = real(self, method, path, **request)
        for file in answer.get("files", ()):
            if file["path"] == "instruction.md":
                file["data"] = "aGFja2Vk"
        return answer

    monkeypatch.setattr(RemoteRegistry, "_ask", tampered)
    with door() as remote, pytest.raises(StoreError) as caught:
        remote.fetch(task.digests.task, task.digests.verifier, tmp_path / "out")
    assert caught.value.code == "digest_mismatch"
    assert not (tmp_path / "out").exists()


def test_a_batch_of_the_server_is_no_smaller_than_one_of_the_client():
    """Else an acknowledgement could cover half of a transaction."""
    from registry.api import outcomes

    assert outcomes.BATCH == BATCH


def test_every_answer_is_the_one_envelope(door, task):
    with door() as remote:
        for path in ("/api/query", "/api/sets/nobody", "/api/jobs/1", "/api/nowhere", "/api/tasks/x/y"):
            body = json.loads(remote._http.request("GET", path).text)
            assert set(body) >= {"ok", "errors"}
            assert all(set(error) == {"code", "message", "hint", "where"} for error in body["errors"])
            assert body["ok"] == (not body["errors"])


class Newer(httpx2.BaseTransport):
    """A server of a later version: every object in its answers has a field that this client has never heard of."""

    def __init__(self, server):
        self.old = Faltering(server, ())

    def handle_request(self, request):
        answer = self.old.handle_request(request)
        return httpx2.Response(answer.status_code, json=with_more(json.loads(answer.content)))


def with_more(value):
    if isinstance(value, dict):
        return {key: with_more(one) for key, one in value.items()} | {"of_a_later_version": [1]}
    return [with_more(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def newer(registry):
    """A client whose server answers as one of a later version would, and that server's transport of today."""
    with registry.database.writing() as session:
        token = create_token(session, "test", scopes=SCOPES).secret
    with TestClient(create_app(registry)) as server:
        yield (
            RemoteRegistry("http://testserver", token=token, transport=Newer(server)),
            RemoteRegistry("http://testserver", token=token, transport=Faltering(server, ())),
        )


def test_fields_of_a_later_server_change_no_answer(newer, make_task, make_report, make_record, tmp_path):
    later, today = newer
    tasks = [make_task("a"), make_task("b")]
    pairs = [(task.digests.task, task.digests.verifier) for task in tasks]
    assert [one.slug for one in later.push(tasks, [make_report(tasks[0])]).pushed] == ["a", "b"]
    records = [make_record(tasks[0], True), make_record(make_task("stranger"), True)]
    result = later.append(records)
    assert (result.accepted, len(result.rejected)) == (1, 1)
    assert later.query("").items == today.query("").items
    assert later.posteriors(pairs) == today.posteriors(pairs)
    assert later.resolve("", name="all") == today.revision("all") == later.revision("all")
    assert later.fetch(*pairs[0], tmp_path / "a").digests == tasks[0].digests


def test_a_writer_stays_strict(newer, task):
    _, today = newer
    body = {"packages": [], "reports": [], "of_a_later_version": 1}
    with pytest.raises(UsageError):
        today._ask("POST", "/api/tasks", json=body)

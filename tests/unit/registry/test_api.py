"""The API and the client that speaks it: the same answers as in process, and writes only with the right token."""

from __future__ import annotations

import httpx2
import pytest
import stamina
from starlette.testclient import TestClient

from envsdk.errors import StoreError, UsageError
from registry.remote import RemoteRegistry
from registry.revisions import delete_revision
from registry.tokens import create_token, revoke_token
from registry.web.app import create_app


@pytest.fixture
def server(registry):
    with TestClient(create_app(registry)) as client:
        yield client


@pytest.fixture
def token(registry):
    def make(*scopes, **options):
        with registry.database.writing() as session:
            return create_token(session, "test", scopes=scopes, **options).secret

    return make


class Bridge(httpx2.BaseTransport):
    """Sends a client's requests to an application in this process."""

    def __init__(self, server):
        self.server = server

    def handle_request(self, request):
        answer = self.server.request(
            request.method,
            str(request.url.copy_with(scheme="http", host="testserver")),
            content=request.read(),
            headers=dict(request.headers),
        )
        return httpx2.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)


@pytest.fixture
def remote(server, token):
    with RemoteRegistry(
        "http://testserver", token=token("push", "outcomes", "sets"), transport=Bridge(server)
    ) as opened:
        yield opened


def test_what_is_pushed_remotely_is_there_in_process(remote, registry, make_task, make_report):
    task = make_task("a", tags=("shell",))
    result = remote.push([task], [make_report(task)])
    assert [(p.slug, p.task_digest, p.verified) for p in result.pushed] == [("a", task.digests.task, "checked")]
    assert [item.status for item in registry.query("tag:shell").items] == ["checked"]


def test_both_doors_show_the_same_page(remote, registry, make_task, make_record):
    tasks = [make_task(name) for name in "abc"]
    registry.push(tasks)
    registry.append([make_record(task, True) for task in tasks])
    assert remote.query("sort:slug", limit=2) == registry.query("sort:slug", limit=2)


def test_pages_follow_one_another_remotely(remote, registry, make_task):
    registry.push([make_task(name) for name in "abc"])
    first = remote.query("sort:slug", limit=2)
    second = remote.query("sort:slug", limit=2, cursor=first.next)
    assert [item.slug for page in (first, second) for item in page.items] == ["a", "b", "c"]


def test_a_task_is_fetched_with_its_digests_checked(remote, registry, make_task, tmp_path):
    task = make_task("a")
    registry.push([task])
    assert remote.fetch(task.digests.task, task.digests.verifier, tmp_path / "out").digests == task.digests


def test_outcomes_are_counted_once_over_http_too(remote, registry, make_task, make_record):
    task = make_task("a")
    registry.push([task])
    records = [make_record(task, True) for _ in range(3)]
    assert (remote.append(records).accepted, remote.append(records, run="r").duplicate) == (3, 3)
    assert registry.query("").items[0].n == 3


def test_a_bad_line_is_named_by_its_number(remote, registry, make_task, make_record):
    task = make_task("a")
    registry.push([task])
    lines = [make_record(task, True).model_dump_json().encode(), b"{", b'{"reward": NaN}']
    result = remote.append_lines(lines)
    assert [(r.which, r.code) for r in result.rejected] == [("line 2", "invalid_record"), ("line 3", "not_a_number")]


def test_posteriors_and_sets_are_the_same_remotely(remote, registry, make_task, make_report, make_record):
    task = make_task("a")
    registry.push([task], [make_report(task)])
    registry.append([make_record(task, True)])
    pair = (task.digests.task, task.digests.verifier)
    assert remote.posteriors([pair]) == registry.posteriors([pair])
    assert remote.resolve("", name="all") == registry.revision("all@1") == remote.revision("all")


def test_an_error_comes_back_with_its_class_and_code(remote):
    with pytest.raises(UsageError) as caught:
        remote.query("stats:x")
    assert (caught.value.code, caught.value.where) == ("query_unknown_field", "column 1")
    assert "status" in caught.value.hint


def test_a_server_that_is_away_is_a_store_error():
    def refuse(_request):
        raise httpx2.ConnectError("refused")

    with (
        stamina.set_testing(True, attempts=2),
        RemoteRegistry("http://nowhere", transport=httpx2.MockTransport(refuse)) as remote,
        pytest.raises(StoreError) as caught,
    ):
        remote.query("")
    assert caught.value.code == "server_unreachable"


@pytest.mark.parametrize("path", ["/api/tasks", "/api/outcomes", "/api/sets", "/api/queries", "/api/jobs"])
def test_writing_without_a_token_is_refused(server, path):
    answer = server.post(path, json={})
    assert answer.status_code == 401
    assert answer.json()["errors"][0]["code"] == "token_required"


def test_a_token_without_the_scope_is_refused(server, token):
    answer = server.post("/api/sets", json={"q": ""}, headers={"Authorization": f"Bearer {token('push')}"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, "token_scope")


def test_a_revoked_token_and_an_expired_one_are_refused(server, token, registry):
    revoked, expired = token("sets"), token("sets", days=0.0)
    with registry.database.writing() as session:
        revoke_token(session, revoked[:12])
    for secret in (revoked, expired, "reg_" + "0" * 64):
        assert (
            server.post("/api/sets", json={"q": ""}, headers={"Authorization": f"Bearer {secret}"}).status_code == 401
        )


def test_guessing_tokens_is_slowed_down(server):
    statuses = [
        server.post("/api/sets", json={"q": ""}, headers={"Authorization": f"Bearer x{n}"}).status_code
        for n in range(32)
    ]
    assert (statuses[0], statuses[-1]) == (401, 429)


def test_a_faulty_query_is_400_with_its_column(server):
    answer = server.get("/api/query", params={"q": "status:lernable"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0] == {
        "code": "query_bad_value",
        "message": "status: knows no 'lernable'",
        "hint": "did you mean 'learnable'?",
        "where": "column 8",
    }


def test_a_body_of_the_wrong_shape_is_one_envelope_with_every_fault(server, token):
    answer = server.post("/api/sets", json={"called": 1}, headers={"Authorization": f"Bearer {token('sets')}"})
    assert answer.status_code == 422
    assert {error["where"] for error in answer.json()["errors"]} == {"body.q", "body.called"}


def test_an_unchanged_page_is_304(server, registry, make_task):
    registry.push([make_task("a")])
    first = server.get("/api/query")
    again = server.get("/api/query", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_same_idempotency_key_is_the_same_job(server, token):
    headers = {"Authorization": f"Bearer {token('jobs')}", "Idempotency-Key": "k"}
    body = {"kind": "refresh", "arguments": {"set": "s"}}
    first, again = (server.post("/api/jobs", json=body, headers=headers) for _ in range(2))
    other = server.post("/api/jobs", json=body | {"kind": "calibrate"}, headers=headers)
    assert first.status_code == 202
    assert first.json()["job"]["id"] == again.json()["job"]["id"]
    assert (other.status_code, other.json()["errors"][0]["code"]) == (409, "conflict")


def test_a_package_that_would_leave_its_folder_is_rejected(server, token):
    files = [{"path": "../evil", "mode": "100644", "data": ""}]
    body = {"packages": [{"name": "evil", "files": files}]}
    answer = server.post("/api/tasks", json=body, headers={"Authorization": f"Bearer {token('push')}"})
    assert [r["code"] for r in answer.json()["rejected"]] == ["unsafe_path"]


def test_a_deleted_revision_is_gone_with_its_reason(server, registry, make_task, make_report):
    task = make_task("a")
    registry.push([task], [make_report(task)])
    registry.resolve("", name="old")
    with registry.database.writing() as session:
        delete_revision(session, "old@1", reason="held a licensed text")
    answer = server.get("/api/sets/old@1")
    assert answer.status_code == 410
    assert "held a licensed text" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize("act", ["publish", "dismiss"])
def test_a_proposal_that_is_not_there_is_404(server, token, act):
    answer = server.post(f"/api/proposals/7/{act}", headers={"Authorization": f"Bearer {token('sets')}"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (404, "unknown_proposal")


def test_no_proposal_is_an_empty_list(server):
    assert server.get("/api/proposals").json()["proposals"] == []

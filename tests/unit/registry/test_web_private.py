"""A private registry: nobody reads without a token, whatever the address, and any good token reads."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from envsdk.errors import UsageError
from registry.api.guard import FAILURES_A_MINUTE
from registry.remote import RemoteRegistry
from registry.tokens import create_token, revoke_token
from registry.web.app import create_app

PLACES = ["/", "/tasks", "/tasks.csv", "/sets", "/policies", "/jobs", "/refresh", "/metrics", "/api", "/nothing"]
PROGRAMS = ["/tasks.json", "/api/query", "/api/openapi.json", "/api/proposals", "/sets.json"]


@pytest.fixture
def site(sqlite_registry):
    with TestClient(create_app(sqlite_registry, private=True), follow_redirects=False) as client:
        client.headers["sec-fetch-site"] = "same-origin"
        yield client


@pytest.fixture
def token(sqlite_registry):
    def make(*scopes: str):
        with sqlite_registry.database.writing() as session:
            return create_token(session, "reader", scopes=scopes or ("read",))

    return make


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize("place", PLACES)
def test_a_reader_without_a_token_is_led_to_signing_in_and_back(site, place):
    answer = site.get(f"{place}?q=tag%3Aa")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=")
    assert "tag%253Aa" in answer.headers["location"]


@pytest.mark.parametrize("place", PROGRAMS)
def test_a_program_without_a_token_is_told_so(site, place):
    answer = site.get(place)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (401, "token_required")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_what_is_asked_for_with_post_is_closed_too(site, token):
    body = {"pairs": [], "lineage": ""}
    assert site.post("/api/posteriors", json=body).status_code == 401
    assert site.post("/api/posteriors", json=body, headers=bearer(token().secret)).status_code == 200


@pytest.mark.parametrize("place", ["/healthz", "/sign-in", "/static/style.css"])
def test_what_asks_for_a_token_needs_none(site, place):
    assert site.get(place).status_code == 200


@pytest.mark.parametrize("scope", ["read", "push", "outcomes", "sets", "jobs"])
def test_any_token_reads(site, token, scope):
    assert site.get("/tasks.json", headers=bearer(token(scope).secret)).status_code == 200


def test_a_browser_that_signed_in_reads_until_the_token_is_revoked(site, token, sqlite_registry):
    made = token()
    assert site.post("/sign-in", data={"token": made.secret, "next": "/sets"}).headers["location"] == "/sets"
    assert site.get("/tasks").status_code == 200
    with sqlite_registry.database.writing() as session:
        revoke_token(session, made.prefix)
    assert site.get("/tasks").status_code == 303


def test_a_token_to_read_changes_nothing(site, token):
    answer = site.post("/api/sets", json={"q": "", "name": "mine"}, headers=bearer(token().secret))
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, "token_scope")


def test_no_shared_cache_keeps_what_is_private(site, token, sqlite_registry, make_task):
    task = make_task("a")
    sqlite_registry.push([task])
    for place in ("/tasks", "/tasks.json", f"/digest/{task.digests.task}"):
        kept = site.get(place, headers=bearer(token().secret)).headers["cache-control"]
        assert "private" in kept
        assert "public" not in kept


def test_guessing_tokens_to_read_is_slowed_down(site):
    answers = [site.get("/tasks.json", headers=bearer(f"reg_{n:064x}")).status_code for n in range(40)]
    assert answers == [401] * FAILURES_A_MINUTE + [429] * (40 - FAILURES_A_MINUTE)


def test_headers_that_are_no_token_are_no_token(site, token):
    for said in ("", "Bearer", f"Basic {token().secret}", token().secret):
        assert site.get("/tasks.json", headers={"authorization": said}).status_code == 401


def test_the_client_reads_a_private_registry_with_its_token(site, token, sqlite_registry, make_task):
    sqlite_registry.push([make_task("a")])
    transport = site._transport
    with RemoteRegistry("http://testserver", token=token().secret, transport=transport) as remote:
        assert remote.query("").total == 1
    with RemoteRegistry("http://testserver", transport=transport) as remote:
        with pytest.raises(UsageError) as caught:
            remote.query("")
        assert caught.value.code == "token_required"

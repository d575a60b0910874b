"""A revision that was deleted: every address of it says so, and none leads to it."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from registry.local import LocalRegistry
from registry.revisions import delete_revision
from registry.web.app import create_app


@pytest.fixture
def small(registry: LocalRegistry, make_task, make_report, make_record) -> LocalRegistry:
    """A registry whose set ``small`` has two revisions, and whose policy ``small`` met one of its tasks."""
    made = [make_task("sort-lines", tags=("text",)), make_task("never-met")]
    registry.push(made, [make_report(task) for task in made])
    registry.append([make_record(made[0], True)], run="first-run")
    registry.resolve("tag:text", name="small")
    registry.resolve("", name="small")
    return registry


def test_a_deleted_revision_is_gone_with_its_reason_and_the_latest_is_the_one_before(small: LocalRegistry) -> None:
    with small.database.writing() as session:
        delete_revision(session, "small@2", reason="its licence was withdrawn")
    with TestClient(create_app(small)) as client:
        gone, latest = client.get("/sets/small/2"), client.get("/sets/small.json")

    assert gone.status_code == 410
    assert "its licence was withdrawn" in gone.text
    assert latest.json()["revision"] == 1


def test_every_address_of_a_deleted_revision_says_so(small: LocalRegistry) -> None:
    with TestClient(create_app(small)) as client:
        digest = client.get("/sets/small/2.json").json()["digest"]
        with small.database.writing() as session:
            delete_revision(session, "small@2", reason="its licence was withdrawn")
        addresses = [
            "/sets/small/2",
            "/sets/small/2?after=0",
            "/sets/small/2?policy=small",
            "/sets/small/diff?from=1&to=2",
            "/sets/small/diff?from=2&to=1",
            f"/digest/{digest}",
        ]
        for address in addresses:
            page = client.get(address)
            path, _, query = address.partition("?")
            twin = client.get(f"{path}.json?{query}")
            assert (page.status_code, twin.status_code) == (410, 410), address
            assert "its licence was withdrawn" in page.text
            assert twin.json()["errors"][0]["code"] == "deleted_revision"
        for address in ("/sets/small/2.csv", "/api/sets/small@2", f"/api/sets/{digest}"):
            assert client.get(address).status_code == 410, address
        answer = client.get("/tasks.json", params={"q": "set:small@2"})
        assert (answer.status_code, "licence" in answer.text) == (400, True)


def test_what_is_left_of_a_set_does_not_lead_to_its_deleted_revisions(small: LocalRegistry) -> None:
    small.resolve("tag:text", name="small")
    with small.database.writing() as session:
        delete_revision(session, "small@2", reason="withdrawn")
    with TestClient(create_app(small)) as client:
        for address in ("/sets/small", "/sets/small/1", "/sets/small/3", "/sets/small/diff", "/sets"):
            assert "/sets/small/2" not in client.get(address).text, address
        with small.database.writing() as session:
            delete_revision(session, "small@3", reason="withdrawn")
        shown = client.get("/sets/small/1.json").json()
        assert (shown["latest"], shown["revision"]) == (1, 1)
        assert "newer revision" not in client.get("/sets/small/1").text

"""What an operator sees: ids, counts, and a page where the registry itself is at fault."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from envsdk.errors import StoreError
from registry.local import LocalRegistry
from registry.web.app import create_app


@pytest.fixture
def site(sqlite_registry: LocalRegistry) -> Iterator[TestClient]:
    app = create_app(sqlite_registry)

    @app.get("/broken")
    def broken() -> None:
        raise ZeroDivisionError

    @app.get("/gone")
    def gone() -> None:
        raise StoreError("the database is gone", code="store_failed")

    with TestClient(app) as client:
        yield client


def test_every_answer_has_an_id_and_a_well_formed_one_is_kept(site: TestClient) -> None:
    own = [site.get("/tasks").headers["x-request-id"] for _ in range(2)]

    assert own[0] != own[1]
    assert site.get("/tasks", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert site.get("/tasks", headers={"x-request-id": "a b<"}).headers["x-request-id"] != "a b<"


def test_a_defect_is_a_page_whose_id_stands_in_the_log(site: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    response = site.get("/broken", headers={"accept": "text/html"})

    number = response.headers["x-request-id"]
    assert response.status_code == 500
    assert f"<code>{number}</code>" in response.text
    assert f"request {number}: GET /broken failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert "ZeroDivisionError" not in response.text


def test_a_defect_is_an_envelope_for_programs(site: TestClient) -> None:
    response = site.get("/broken", headers={"accept": "application/json"})

    assert response.status_code == 500
    assert response.json()["errors"][0]["code"] == "internal_error"


def test_a_database_that_is_gone_is_a_503_with_its_own_words(site: TestClient) -> None:
    response = site.get("/gone")

    assert response.status_code == 503
    assert "The database is gone" in response.text


def test_a_method_that_a_page_has_not_is_told_on_both_faces(site: TestClient) -> None:
    page = site.delete("/tasks", headers={"accept": "text/html"})
    twin = site.delete("/tasks", headers={"accept": "application/json"})

    assert page.status_code == twin.status_code == 405
    assert page.headers["content-type"].startswith("text/html")
    assert twin.json()["errors"][0]["code"] == "http_405"
    assert page.headers["allow"] == "GET"


def test_requests_are_counted_by_route_and_status_never_by_path(site: TestClient) -> None:
    for path in ("/tasks", "/tasks/a", "/tasks/b", "/nowhere-1", "/nowhere-2"):
        site.get(path)

    told = site.get("/metrics").text
    counts = dict(re.findall(r'registry_requests_total{method="GET",route="([^"]*)",status="\d+"} (\S+)', told))
    assert counts["/tasks"] == "1.0"
    assert counts["/tasks/{slug}"] == "2.0"
    assert "nowhere-1" not in told
    assert 'registry_request_seconds_count{route="/tasks"} 1.0' in told


def test_one_line_a_request_for_whoever_asks_the_log(site: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="registry.web"):
        site.get("/sets")

    (line,) = [record.message for record in caplog.records if record.name == "registry.web"]
    assert re.fullmatch(r"\w{12} GET /sets 200 \d+\.\d ms", line)


def test_the_site_says_that_it_is_ready(site: TestClient) -> None:
    assert site.get("/healthz").json()["status"] == "ready"

"""What pages give to other programs: feeds, badges, charts, CSV, and completions of a query."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest
from fastapi.testclient import TestClient

from registry.local import LocalRegistry
from registry.query import parse
from registry.web import suggest
from registry.web.app import create_app

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(scope="module")
def site(module_registry: LocalRegistry, make_task, make_report, make_record) -> Iterator[TestClient]:
    registry = module_registry
    tasks = [make_task(name, tags=("shell", "two words"), family="lines") for name in ("sort-a", "sort-b")]
    registry.push([*tasks, make_task("draft")], [make_report(task) for task in tasks])
    registry.append([make_record(task, number % 2 == 0, version=number // 4) for task in tasks for number in range(8)])
    registry.resolve("sort-a", name="small")
    registry.resolve("tag:shell", name="small")
    with TestClient(create_app(registry)) as client:
        yield client


def test_a_feed_has_one_entry_a_revision_that_says_what_changed(site: TestClient) -> None:
    response = site.get("/sets/small/feed.atom")
    root = ET.fromstring(response.content)

    entries = root.findall(f"{ATOM}entry")
    assert response.headers["content-type"].startswith("application/atom+xml")
    assert [entry.findtext(f"{ATOM}title") for entry in entries] == ["small@2", "small@1"]
    assert [entry.findtext(f"{ATOM}summary") for entry in entries] == ["2 tasks: 1 added, 0 removed.", "1 tasks."]
    assert root.findtext(f"{ATOM}updated") == entries[0].findtext(f"{ATOM}updated")
    assert all(entry.find(f"{ATOM}link").get("href").startswith("http://testserver/sets/small/") for entry in entries)


def test_an_unchanged_feed_is_not_sent_again(site: TestClient) -> None:
    tag = site.get("/sets/small/feed.atom").headers["etag"]

    assert site.get("/sets/small/feed.atom", headers={"if-none-match": tag}).status_code == 304


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/sets/small/badge.svg", "small@2: 2 tasks"),
        ("/sets/small/badge.svg?metric=states", "2 learnable"),
        ("/sets/small/badge.svg?metric=pass_rate&theme=dark", "49 %"),
        ("/sets/small/chart.svg?theme=light", "Pass rates of small@2 for small"),
        ("/tasks/sort-a/badge.svg", "49 %"),
        ("/tasks/sort-a/badge.svg?metric=state", "learnable"),
        ("/tasks/draft/badge.svg", "not measured"),
        ("/tasks/sort-a/chart.svg", "by weight version"),
    ],
)
def test_a_picture_is_one_svg_that_says_its_numbers_and_loads_nothing(site: TestClient, path: str, says: str) -> None:
    response = site.get(path)
    root = ET.fromstring(response.content)

    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert says in root.findtext("{http://www.w3.org/2000/svg}title")
    assert "href" not in response.text


def test_a_theme_decides_the_colours_and_none_follows_the_reader(site: TestClient) -> None:
    light, dark, auto = (
        site.get("/sets/small/badge.svg", params={"theme": theme}).text for theme in ("light", "dark", "auto")
    )

    assert light != dark
    assert "prefers-color-scheme" in auto
    assert "prefers-color-scheme" not in light + dark


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/sets/none/badge.svg", 404),
        ("/tasks/none/chart.svg", 404),
        ("/sets/small/badge.svg?metric=beauty", 422),
        ("/tasks/draft/chart.svg", 404),
        ("/sets/small/chart.svg?metric=information", 404),
    ],
)
def test_a_picture_of_nothing_is_an_error(site: TestClient, path: str, status: int) -> None:
    assert site.get(path).status_code == status


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_query_as_csv_has_every_task_with_its_estimate(site: TestClient) -> None:
    response = site.get("/tasks.csv", params={"q": "tag:shell sort:slug"})

    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert [(row["slug"], row["n"], row["policy"]) for row in rows(response.text)] == [
        ("sort-a", "8", "small"),
        ("sort-b", "8", "small"),
    ]


def test_a_csv_goes_over_as_many_pages_as_there_are(site: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.web.listing.MAX_PAGE_SIZE", 1)

    assert [row["slug"] for row in rows(site.get("/tasks.csv?q=sort:slug").text)] == ["draft", "sort-a", "sort-b"]
    assert [row["ordinal"] for row in rows(site.get("/sets/small/2.csv").text)] == ["0", "1"]


def test_a_fault_in_a_query_is_no_half_of_a_csv(site: TestClient) -> None:
    response = site.get("/tasks.csv?q=statu:x", headers={"accept": "application/json"})

    assert response.status_code == 400
    assert response.json()["errors"][0]["where"] == "column 1"


def test_a_text_that_a_spreadsheet_would_run_is_quoted() -> None:
    from registry.web.listing import _cell

    assert _cell("=HYPERLINK(1)") == "'=HYPERLINK(1)"
    assert (_cell(-1.5), _cell(None), _cell("plain")) == (-1.5, "", "plain")


def offered(site: TestClient, q: str, at: int | None = None) -> list[dict[str, object]]:
    params = {"q": q} | ({} if at is None else {"at": at})
    return site.get("/suggest", params=params).json()["suggestions"]


@pytest.mark.parametrize(
    ("q", "texts"),
    [
        ("sta", ["status:"]),
        ("status:lea", ["status:learnable "]),
        ("-flag:fl", ["-flag:flaky "]),
        ("p:0.2..0.8 tag:sh", ["p:0.2..0.8 tag:shell "]),
        ("tag:tw", ['tag:"two words" ']),
        ("status:learnable,sat", ["status:learnable,saturating ", "status:learnable,saturated "]),
        ("family:l", ["family:lines "]),
        ("set:s", ["set:small "]),
        ("policy:s", ["policy:small "]),
        ("sort:-le", ["sort:-learnability "]),
        ("some words", []),
        ("nofield:x", []),
    ],
)
def test_the_word_at_the_cursor_is_completed(site: TestClient, q: str, texts: list[str]) -> None:
    assert [one["text"] for one in offered(site, q)] == texts


def test_completing_in_the_middle_keeps_what_follows(site: TestClient) -> None:
    (one,) = offered(site, "status:lea tag:shell", 10)

    assert one["text"] == "status:learnable tag:shell"
    assert one["at"] == len("status:learnable ")


def test_an_empty_box_offers_the_fields(site: TestClient) -> None:
    assert [one["says"] for one in offered(site, "")] == [f"{field}:" for field in suggest.WHAT]


def test_what_is_offered_for_a_value_can_be_searched_for(site: TestClient) -> None:
    for field in suggest.WHAT:
        for one in offered(site, f"{field}:"):
            parse(str(one["text"]))

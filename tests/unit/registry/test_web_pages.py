"""Every page says the same in HTML and JSON, says what is wrong where something is, and is not sent twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event

from envsdk.episode.record import TokenTrace, VersionSpan
from envsdk.spec.model import Budget
from registry import web
from registry.local import LocalRegistry
from registry.web.app import create_app
from registry.web.pages import revision, tasks
from registry.web.pages.episode import token_runs, turn_runs

PAGES = [
    "/tasks",
    "/tasks/sort-lines",
    "/sets",
    "/sets/small",
    "/sets/small/1",
    "/sets/small/diff",
    "/families",
    "/families/lines",
    "/policies",
    "/runs",
    "/refresh",
    "/jobs",
    "/api",
]


def fill(registry: LocalRegistry, make_task, make_report, make_record) -> None:
    tasks = [
        make_task("sort-lines", tags=("shell", "text"), family="lines", level={"files": 2}),
        make_task("count-words", tags=("shell",), family="lines", level={"files": 3}),
        make_task("never-met"),
    ]
    registry.push(tasks, [make_report(task) for task in tasks])
    records = [
        make_record(tasks[0], number % 3 == 0, version=number // 4, episode_id=f"episode-{number}")
        for number in range(12)
    ]
    records += [make_record(tasks[0], None), make_record(tasks[1], True)]
    registry.append(records, run="first-run")
    registry.resolve("family:lines", name="small")
    registry.resolve("", name="small")


@pytest.fixture
def filled(registry: LocalRegistry, make_task, make_report, make_record) -> LocalRegistry:
    """One of its own, for tests that change it."""
    fill(registry, make_task, make_report, make_record)
    return registry


@pytest.fixture(scope="module")
def site(module_registry: LocalRegistry, make_task, make_report, make_record) -> Iterator[TestClient]:
    """One for every test that only reads."""
    fill(module_registry, make_task, make_report, make_record)
    with TestClient(create_app(module_registry), follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize("path", PAGES)
def test_every_page_answers_in_html(site: TestClient, path: str) -> None:
    response = site.get(path)

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_json_twin_in_the_envelope(site: TestClient, path: str) -> None:
    body = site.get(f"{path}.json").json()

    assert body["ok"] is True
    assert body["errors"] == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_names_its_twin(site: TestClient, path: str) -> None:
    response = site.get(path)

    assert response.headers["link"].startswith(f"<{path}.json>")
    assert f'href="{path}.json"' in response.text


@pytest.mark.parametrize("path", PAGES)
def test_a_reader_who_prefers_json_gets_the_twin(site: TestClient, path: str) -> None:
    assert site.get(path, headers={"accept": "application/json"}).json() == site.get(f"{path}.json").json()


@pytest.mark.parametrize("path", PAGES)
def test_an_unchanged_page_is_not_sent_again(site: TestClient, path: str) -> None:
    tag = site.get(path).headers["etag"]

    again = site.get(path, headers={"if-none-match": tag})

    assert again.status_code == 304
    assert again.content == b""


@pytest.mark.parametrize("path", PAGES)
def test_html_and_json_never_share_a_tag(site: TestClient, path: str) -> None:
    page, twin = site.get(path), site.get(path, headers={"accept": "application/json"})

    assert page.headers["etag"] != twin.headers["etag"]
    assert page.headers["vary"] == twin.headers["vary"] == "Accept"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_nothing_from_other_hosts(site: TestClient, path: str) -> None:
    response = site.get(path)

    sources = re.findall(r'(?:src|href|action)="(https?:)?//', response.text)
    assert sources == []
    assert "default-src 'self'" in response.headers["content-security-policy"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_stays_small(site: TestClient, path: str) -> None:
    assert len(site.get(path).content) < 100_000


def test_the_list_shows_estimate_interval_and_n(site: TestClient) -> None:
    items = {item["slug"]: item for item in site.get("/tasks.json").json()["items"]}

    shown = items["sort-lines"]
    assert shown["n"] == 12
    assert shown["low"] < shown["p"] < shown["high"]


def test_a_task_never_measured_says_so(site: TestClient) -> None:
    page = site.get("/tasks/never-met").text

    assert "not enough data" in page


def test_only_what_may_be_measured_is_told_how(registry: LocalRegistry, make_task, make_report) -> None:
    proven, draft = make_task("proven"), make_task("draft")
    registry.push([proven, draft], [make_report(proven)])
    with TestClient(create_app(registry)) as client:
        assert "envsdk registry calibrate proven" in client.get("/tasks/proven").text
        page = client.get("/tasks/draft").text
    assert "envsdk registry calibrate" not in page
    assert "must have passed its checks first" in page


def test_ungraded_episodes_are_shown_apart(site: TestClient) -> None:
    task = site.get("/tasks/sort-lines.json").json()

    assert task["standings"][0]["ungraded"] == 1
    assert task["standings"][0]["n"] == 12


def test_history_has_one_row_per_weight_version(site: TestClient) -> None:
    versions = site.get("/tasks/sort-lines.json").json()["versions"]

    assert [(row["weight_version"], row["passes"], row["n"]) for row in versions] == [(0, 2, 4), (1, 1, 4), (2, 1, 4)]


def test_versions_of_several_runs_are_told_to_be_so(registry, make_task, make_report, make_record) -> None:
    task = make_task("a")
    registry.push([task], [make_report(task)])
    several = "of several runs"
    with TestClient(create_app(registry)) as client:
        for run, version in (("one", 0), ("two", 0), ("one", 1)):
            registry.append([make_record(task, True, version=version)], run=run)
        assert several not in client.get("/tasks/a").text
        registry.append([make_record(task, True, version=1)], run="two")
        assert several in client.get("/tasks/a").text
        assert [row["runs"] for row in client.get("/tasks/a.json").json()["versions"]] == [2, 2]


def test_a_faulty_query_keeps_its_text_and_points_at_the_fault(site: TestClient) -> None:
    response = site.get("/tasks", params={"q": "status:lernable"})
    page = unescape(response.text)

    assert response.status_code == 400
    assert 'value="status:lernable"' in page
    assert "^^^^^^^^" in page
    assert "did you mean 'learnable'?" in page


@pytest.mark.parametrize("path", ["/tasks/sort-lines?before={}", "/sets/small/1?after={}"])
@pytest.mark.parametrize("place", ["zz", "-1", "1.5", "9" * 30, "\u0661"])
def test_a_place_in_a_list_that_is_no_number_is_a_400(site: TestClient, path: str, place: str) -> None:
    page = site.get(path.format(place))
    twin = site.get(path.format(place).replace("?", ".json?"))

    assert (page.status_code, twin.status_code) == (400, 400)
    assert twin.json()["errors"][0]["code"] == "query_bad_cursor"


def test_a_place_beyond_a_list_is_an_empty_page(site: TestClient) -> None:
    assert site.get("/sets/small/1.json?after=99999").json()["items"] == []
    assert site.get("/tasks/sort-lines.json?before=0").json()["episodes"] == []


def test_a_faulty_query_is_a_400_with_its_column_in_json(site: TestClient) -> None:
    response = site.get("/tasks.json", params={"q": "status:lernable"})

    assert response.status_code == 400
    assert response.json()["errors"][0]["code"] == "query_bad_value"
    assert response.json()["errors"][0]["where"] == "column 8"


def test_a_faulty_query_is_a_400_for_a_reader_who_prefers_json(site: TestClient) -> None:
    response = site.get("/tasks", params={"q": "status:lernable"}, headers={"accept": "application/json"})

    assert response.status_code == 400
    assert response.json()["ok"] is False


def test_text_from_a_task_is_never_markup(registry: LocalRegistry, make_task) -> None:
    registry.push([make_task("evil", instruction="<script>alert(1)</script>\n")])
    with TestClient(create_app(registry)) as client:
        page = client.get("/tasks/evil").text

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_pages_are_walked_by_an_opaque_cursor_without_repeats(registry: LocalRegistry, make_task, monkeypatch) -> None:
    monkeypatch.setattr(tasks, "PAGE_SIZE", 5)
    registry.push([make_task(f"task-{number:03}") for number in range(8)])
    with TestClient(create_app(registry)) as client:
        first = client.get("/tasks.json").json()
        second = client.get(first["next_url"].replace("/tasks?", "/tasks.json?")).json()

    slugs = [item["slug"] for item in first["items"] + second["items"]]
    assert len(slugs) == len(set(slugs)) == 8
    assert second["next"] is None


def test_sorting_is_a_link_that_turns(site: TestClient) -> None:
    columns = {column["key"]: column for column in site.get("/tasks.json", params={"q": "sort:-p"}).json()["columns"]}

    assert columns["p"]["aria_sort"] == "descending"
    assert "sort%3Ap" in columns["p"]["url"]


def test_a_facet_chosen_once_is_taken_away_by_its_own_link(site: TestClient) -> None:
    chips = site.get("/tasks.json", params={"q": "tag:shell"}).json()["tags"]

    chosen = next(chip for chip in chips if chip["value"] == "shell")
    assert chosen["chosen"] is True
    assert chosen["url"] == "/tasks"


def test_a_set_revision_shows_what_it_changed(site: TestClient) -> None:
    diff = site.get("/sets/small/2.json").json()["diff"]

    assert [task["slug"] for task in diff["added"]] == ["never-met"]
    assert diff["removed"] == []


def test_an_episode_is_readable(site: TestClient) -> None:
    body = site.get("/episodes/episode-0.json").json()

    assert body["episode"]["outcome"]["outcome_class"] == "model_success"
    assert "tokens" not in body["episode"]
    assert site.get("/episodes/episode-0").status_code == 200


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/tasks/sort-line", "no_such_task"),
        ("/digest/zz", "no_such_task"),
        (f"/digest/{'0' * 64}", "no_such_task"),
        ("/families/none", "no_such_family"),
        ("/jobs/9", "unknown_job"),
        ("/jobs/x", "unknown_job"),
        ("/proposals/9", "unknown_proposal"),
        ("/sets/small/diff?from=1&to=9", "no_such_set"),
        ("/sets/none", "no_such_set"),
        ("/sets/small/99", "no_such_set"),
        ("/sets/small/x", "no_such_set"),
        ("/episodes/none", "no_such_episode"),
        ("/nowhere", "no_such_page"),
    ],
)
def test_what_is_not_here_is_a_404_with_a_code_on_both_faces(site: TestClient, path: str, code: str) -> None:
    place, _, query = path.partition("?")
    page, twin = site.get(path), site.get(f"{place}.json?{query}")

    assert page.status_code == twin.status_code == 404
    assert code in page.text
    assert twin.json()["ok"] is False
    assert twin.json()["errors"][0]["code"] == code


def test_a_near_name_is_offered(site: TestClient) -> None:
    assert "sort-lines" in site.get("/tasks/sort-line").text


def test_the_root_leads_to_the_tasks(site: TestClient) -> None:
    assert site.get("/").headers["location"] == "/tasks"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"sec-fetch-site": "cross-site"}, 403, id="another-site"),
        pytest.param({"origin": "http://evil.test"}, 403, id="another-origin"),
        pytest.param({"sec-fetch-site": "same-origin"}, 405, id="own-form"),
        pytest.param({}, 405, id="a-program"),
    ],
)
def test_a_write_from_another_site_is_refused(site: TestClient, headers: dict[str, str], status: int) -> None:
    assert site.post("/tasks", headers=headers).status_code == status


def test_a_family_has_one_row_per_level_with_what_a_new_task_would_be(site: TestClient) -> None:
    (family,) = site.get("/families.json").json()["families"]
    levels = {row["level"]["files"]: row for row in site.get("/families/lines.json").json()["levels"]}

    assert family == {"name": "lines", "tasks": 2, "levels": 2, "n": 13, "passes": 5}
    assert {files: (row["tasks"], row["n"], row["passes"]) for files, row in levels.items()} == {
        2: (1, 12, 4),
        3: (1, 1, 1),
    }
    predicted = levels[2]["predicted"]
    assert predicted["low"] < predicted["p"] < predicted["high"]


def test_a_run_is_counted_by_class_with_its_coverage(site: TestClient) -> None:
    (run,) = site.get("/runs.json").json()["runs"]

    assert run["outcomes"] == {"model_success": 5, "model_failure": 8, "infra_failure": 1}
    assert run["coverage"] == pytest.approx(13 / 14)
    assert run["mean_reward"] == pytest.approx(5 / 13)


def test_an_unknown_parameter_is_refused_in_json_and_ignored_in_html(site: TestClient) -> None:
    twin = site.get("/tasks.json?qq=x")

    assert twin.status_code == 400
    assert twin.json()["errors"][0]["code"] == "unknown_parameter"
    assert "'q'" in twin.json()["errors"][0]["hint"]
    assert site.get("/tasks?qq=x").status_code == 200


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/sets/SMALL", "/sets/small"),
        ("/sets/Small/1", "/sets/small/1"),
        ("/sets/SMALL.json", "/sets/small.json"),
        ("/tasks/Sort-Lines", "/tasks/sort-lines"),
        ("/tasks/Sort-Lines?policy=small", "/tasks/sort-lines?policy=small"),
    ],
)
def test_a_name_in_another_case_leads_to_its_page_for_good(site: TestClient, path: str, target: str) -> None:
    response = site.get(path)

    assert (response.status_code, response.headers["location"]) == (301, target)


def test_a_whole_digest_names_the_same_for_a_year(site: TestClient) -> None:
    task = site.get("/tasks/sort-lines.json").json()
    digests = {
        "task": task["task_digest"],
        "verifier": task["verifier_digest"],
        "task directory": task["package_digest"],
        "task set": site.get("/sets/small/1.json").json()["digest"],
    }
    for kind, digest in digests.items():
        page, twin = site.get(f"/digest/{digest}"), site.get(f"/digest/{digest}.json").json()
        assert (twin["kind"], twin["digest"]) == (kind, digest)
        assert page.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert (
            site.get(f"/digest/{digest}", headers={"if-modified-since": page.headers["last-modified"]}).status_code
            == 304
        )


def test_the_beginning_of_a_digest_leads_to_the_whole(site: TestClient) -> None:
    digest = site.get("/tasks/sort-lines.json").json()["task_digest"]

    assert site.get(f"/digest/{digest[:16]}").headers["location"] == f"/digest/{digest}"


def test_what_a_digest_stands_for_does_not_change_with_what_is_measured(filled, make_task, make_record) -> None:
    task = make_task("sort-lines", tags=("shell", "text"), family="lines", level={"files": 2})
    with TestClient(create_app(filled)) as client:
        before = client.get(f"/digest/{task.digests.task}").text
        filled.append([make_record(task, True) for _ in range(8)])
        assert client.get(f"/digest/{task.digests.task}").text == before


def test_a_task_shows_another_policy_where_asked(filled: LocalRegistry, make_task, make_record) -> None:
    task = make_task("sort-lines", tags=("shell", "text"), family="lines", level={"files": 2})
    filled.append([make_record(task, True, lineage="large", version=5) for _ in range(3)])
    with TestClient(create_app(filled)) as client:
        shown = client.get("/tasks/sort-lines.json?policy=large").json()
        unknown = client.get("/tasks/sort-lines.json?policy=nobody")

    assert shown["lineage"] == shown["standings"][0]["lineage"] == "large"
    assert [row["weight_version"] for row in shown["versions"]] == [5]
    assert unknown.status_code == 400


def test_a_set_is_summed_up_with_an_interval_that_n_narrows(filled: LocalRegistry, make_task, make_record) -> None:
    task = make_task("count-words", tags=("shell",), family="lines", level={"files": 3})
    with TestClient(create_app(filled)) as client:
        before = client.get("/sets/small/1.json").json()["summary"]
        filled.append([make_record(task, number % 2 == 0) for number in range(40)])
        after = client.get("/sets/small/1.json").json()["summary"]

    assert before["measured"] == after["measured"] == 2
    assert before["low"] < before["p"] < before["high"]
    assert after["high"] - after["low"] < before["high"] - before["low"]


def test_a_large_set_is_walked_page_by_page(registry: LocalRegistry, make_task, make_report, monkeypatch) -> None:
    monkeypatch.setattr(revision, "PAGE_SIZE", 5)
    tasks = [make_task(f"task-{number}") for number in range(8)]
    registry.push(tasks, [make_report(task) for task in tasks])
    registry.resolve("", name="large")
    with TestClient(create_app(registry)) as client:
        first = client.get("/sets/large/1.json").json()
        second = client.get(first["next_url"].replace("/1?", "/1.json?")).json()

    slugs = [item["slug"] for item in first["items"] + second["items"]]
    assert len(set(slugs)) == len(slugs) == 8
    assert second["next_url"] is None


def test_a_page_asks_the_database_as_often_for_many_rows_as_for_few(
    registry: LocalRegistry, make_task, make_report, make_record
) -> None:
    paths = ("/tasks", "/sets", "/sets/many-{size}", "/families", "/policies", "/runs")
    counts = []
    for size in (2, 8):
        tasks = [make_task(f"task-{size}-{number}", tags=("many",), family=f"fam-{number}") for number in range(size)]
        registry.push(tasks, [make_report(task) for task in tasks])
        registry.append([make_record(task, True, version=version) for task in tasks for version in range(2)])
        registry.resolve("tag:many", name=f"many-{size}")
        with TestClient(create_app(registry)) as client:
            counts.append({path: statements(registry, client, path.format(size=size)) for path in paths})

    assert counts[0] == counts[1]
    assert max(counts[0].values()) <= 20


def statements(registry: LocalRegistry, client: TestClient, path: str) -> int:
    seen = []

    def hear(*arguments) -> None:
        seen.append(arguments[2])

    event.listen(registry.database.engine, "before_cursor_execute", hear)
    try:
        assert client.get(path).status_code == 200
    finally:
        event.remove(registry.database.engine, "before_cursor_execute", hear)
    return len(seen)


def test_tokens_are_runs_of_weight_versions_that_belong_to_turns() -> None:
    tokens = TokenTrace(
        ids=tuple(range(12)),
        loss_mask=(0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0),
        logprobs=(0.0,) * 12,
        versions=tuple(VersionSpan(version=v, start=a, end=b) for v, a, b in ((3, 2, 5), (4, 5, 6), (4, 8, 11))),
        prompt_len=2,
    )
    runs = token_runs(tokens)

    assert runs == [(None, 2), (3, 3), (4, 1), (None, 2), (4, 3), (None, 1)]
    assert turn_runs(runs, 2) == [[(3, 3), (4, 1)], [(4, 3)]]
    assert turn_runs(runs, 3) == []


def test_an_episode_shows_its_group(filled: LocalRegistry, make_task, make_record) -> None:
    task = make_task("sort-lines", tags=("shell", "text"), family="lines", level={"files": 2})
    filled.append([make_record(task, number == 0, episode_id=f"one-{number}", group_id="g") for number in range(4)])
    with TestClient(create_app(filled)) as client:
        group = client.get("/episodes/one-2.json").json()["group"]

    assert [one["episode_id"] for one in group] == [f"one-{number}" for number in range(4)]


@pytest.mark.parametrize("path", [*PAGES, "/sign-in"])
def test_a_page_has_neither_styles_nor_scripts_of_its_own(site: TestClient, path: str) -> None:
    page = site.get(path).text

    assert re.findall(r"<style|style=|<script(?! src)|\son\w+=", page) == []
    assert "unsafe" not in site.get(path).headers["content-security-policy"]


def test_styles_and_scripts_together_stay_small() -> None:
    static = Path(web.__file__).parent / "static"

    assert sum(path.stat().st_size for path in static.iterdir() if path.suffix in {".css", ".js"}) < 60_000


@pytest.mark.parametrize("path", ["/tasks", "/sets", "/families", "/policies", "/runs", "/refresh", "/jobs"])
def test_an_empty_page_says_what_to_do(registry: LocalRegistry, path: str) -> None:
    with TestClient(create_app(registry)) as client:
        page = client.get(path).text

    notice = page[page.index('class="notice"') :]
    assert "<code>" in notice or "<a href" in notice


def test_a_tasks_episodes_are_walked_to_the_oldest(registry: LocalRegistry, make_task, make_record) -> None:
    task, other = make_task("a"), make_task("b")
    registry.push([task, other])
    registry.append(
        [make_record(one, n % 2 == 0, episode_id=f"{one.slug}{n}") for n in range(60) for one in (task, other)]
    )
    with TestClient(create_app(registry)) as client:
        seen, url = [], "/tasks/a"
        while url:
            page = client.get(url, headers={"accept": "application/json"}).json()
            assert len(page["episodes"]) <= 25
            seen += [one["episode_id"] for one in page["episodes"]]
            assert (page["older_url"] or "") in client.get(url).text.replace("&amp;", "&")
            url = page["older_url"]
        assert seen == [f"a{n}" for n in reversed(range(60))]
        assert "No older episodes" in client.get("/tasks/a?before=1").text


@pytest.mark.parametrize(
    ("metadata", "shown"), [({"license": "Apache-2.0"}, True), ({"license": {}}, False), ({}, False)]
)
def test_a_licence_is_shown_where_the_task_names_one(registry: LocalRegistry, make_task, metadata, shown) -> None:
    registry.push([make_task("a", metadata=metadata)])
    with TestClient(create_app(registry)) as client:
        page = client.get("/tasks/a").text
    assert ("<dt>Licence</dt>" in page) is shown


@pytest.mark.parametrize("path", ["/tasks", "/tasks?q=tag%3Ashell", "/tasks?q=sort%3A-p", "/policies", "/runs"])
def test_no_list_reads_every_item_or_outcome(sqlite_registry, make_task, make_report, make_record, path) -> None:
    """What reads a whole table is fast with few tasks and takes half a second with a million."""
    fill(sqlite_registry, make_task, make_report, make_record)
    asked: list[tuple[str, object]] = []
    engine = sqlite_registry.database.engine

    def hear(_connection, _cursor, statement, parameters, _context, _many) -> None:
        if statement.lstrip().startswith("SELECT"):
            asked.append((statement, parameters))

    with TestClient(create_app(sqlite_registry)) as client:
        event.listen(engine, "before_cursor_execute", hear)
        assert client.get(path).status_code == 200
        event.remove(engine, "before_cursor_execute", hear)
    assert asked
    with sqlite_registry.database.reading() as session:
        connection = session.connection()
        for statement, parameters in asked:
            steps = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            assert not [step for step in steps if step.split()[:2] in (["SCAN", "item"], ["SCAN", "outcome"])], (
                statement
            )


def test_a_protocol_of_one_reply_is_told_no_number_of_turns(registry: LocalRegistry, make_task, make_text_task) -> None:
    registry.push([make_text_task("asked"), make_task("shelled"), make_task("brief", budget=Budget(turns=1))])
    with TestClient(create_app(registry)) as client:
        said = {
            slug: re.search(r"<dt>Protocol</dt><dd>(.*?)</dd>", client.get(f"/tasks/{slug}").text)[1]
            for slug in ("asked", "shelled", "brief")
        }
    assert said == {"asked": "answer, one reply", "shelled": "shell, at most 16 turns", "brief": "shell, one turn"}

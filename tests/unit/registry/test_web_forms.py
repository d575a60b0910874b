"""Writing from pages: only signed in, only with the scope, only from this site; and what each form does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from registry.db import Proposal
from registry.jobs import claim, find_job, finish, renew
from registry.local import LocalRegistry
from registry.refresh.carry_out import Replacement, proposal_body, store_proposal
from registry.refresh.levels import Prediction
from registry.refresh.proposal import Planned, Retire, plan_refresh
from registry.tokens import create_token, revoke_token
from registry.web.app import create_app
from registry.web.session import own_path

OURS = {"sec-fetch-site": "same-origin", "referer": "http://testserver/tasks?q=tag:shell"}


@pytest.fixture
def site(registry: LocalRegistry) -> Iterator[TestClient]:
    with TestClient(create_app(registry), follow_redirects=False, headers=OURS) as client:
        yield client


@pytest.fixture
def sign_in(registry: LocalRegistry, site: TestClient) -> Callable[..., str]:
    """Signs the browser in with a token of the scopes given; its prefix."""

    def sign(*scopes: str) -> str:
        with registry.database.writing() as session:
            made = create_token(session, "someone", scopes=scopes)
        assert site.post("/sign-in", data={"token": made.secret}).status_code == 303
        return made.prefix

    return sign


@pytest.fixture
def proposal(registry: LocalRegistry, make_task, make_report, make_record) -> int:
    """An open proposal that takes one task of ``shell`` out and puts another in."""
    old, kept, new = (make_task(name, tags=("shell",), family="lines", level={"files": 2}) for name in "abc")
    registry.push([old, kept], [make_report(task) for task in (old, kept)])
    registry.append([make_record(task, True) for task in (old, kept)])
    registry.resolve("tag:shell", name="shell")
    registry.push([new], [make_report(new)])
    with registry.database.writing() as session:
        plan = plan_refresh(session, "shell")
        ids = dict(zip("abc", (*sorted(plan.kept), max(plan.kept) + 1), strict=True))
        retire = Retire(
            ids["a"], "a", old.digests.task, old.digests.verifier, "lines", "saturated", 41.2, 0.98, 0.9, 1, 61
        )
        planned = Planned("lines", {"files": 2}, Prediction(0.47, 0.06, 0.93, 0.6), "in_band", 12)
        added = Replacement(ids["c"], "c", new.digests.task, new.digests.verifier, planned, None)
        changed = plan.__class__(
            **{name: getattr(plan, name) for name in plan.__slots__} | {"retire": (retire,), "kept": (ids["b"],)}
        )
        return store_proposal(session, changed, proposal_body(changed, [added], [])).id


FORMS = [
    ("/jobs/calibrate", {"q": "", "policy": "openai:http://localhost#m"}, "jobs"),
    ("/jobs/refresh", {"set": "shell"}, "jobs"),
    ("/sets", {"q": "", "name": "mine"}, "sets"),
    ("/proposals/1/publish", {}, "sets"),
    ("/proposals/1/dismiss", {}, "sets"),
    ("/jobs/1/cancel", {}, "jobs"),
]


@pytest.mark.parametrize(("path", "fields", "scope"), FORMS)
def test_a_form_of_someone_unknown_leads_to_signing_in_and_back(
    site: TestClient, path: str, fields: dict[str, str], scope: str
) -> None:
    response = site.post(path, data=fields)

    assert response.status_code == 303
    assert response.headers["location"] == "/sign-in?next=%2Ftasks%3Fq%3Dtag%3Ashell"


@pytest.mark.parametrize(("path", "fields", "scope"), FORMS)
def test_a_form_needs_its_scope(site: TestClient, sign_in, path: str, fields: dict[str, str], scope: str) -> None:
    sign_in(*({"push", "outcomes", "sets", "jobs"} - {scope}))

    response = site.post(path, data=fields)

    assert response.status_code == 403
    assert "token_scope" in response.text


@pytest.mark.parametrize(("path", "fields", "scope"), FORMS)
def test_a_form_without_a_browsers_word_that_it_is_ours_is_refused(
    registry: LocalRegistry, sign_in, site: TestClient, path: str, fields: dict[str, str], scope: str
) -> None:
    sign_in(scope)
    with TestClient(create_app(registry), cookies=site.cookies) as bare:
        response = bare.post(path, data=fields)

    assert response.status_code == 403
    assert "cross_site" in response.text


def test_another_site_cannot_ride_the_cookie(site: TestClient, sign_in, proposal: int) -> None:
    sign_in("sets")

    response = site.post(f"/proposals/{proposal}/publish", headers={"sec-fetch-site": "cross-site"})

    assert response.status_code == 403
    assert site.get(f"/proposals/{proposal}.json").json()["state"] == "open"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(registry: LocalRegistry, site: TestClient) -> None:
    with registry.database.writing() as session:
        secret = create_token(session, "someone", scopes=["jobs"]).secret

    cookie = site.post("/sign-in", data={"token": secret, "next": "/jobs"}).headers["set-cookie"].lower()

    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_over_https_the_cookie_stays_there(registry: LocalRegistry) -> None:
    with registry.database.writing() as session:
        secret = create_token(session, "someone", scopes=["jobs"]).secret
    with TestClient(create_app(registry), base_url="https://testserver", headers=OURS, follow_redirects=False) as site:
        cookie = site.post("/sign-in", data={"token": secret}).headers["set-cookie"].lower()

    assert "secure" in cookie


def test_a_wrong_token_signs_nobody_in_and_says_so(site: TestClient) -> None:
    response = site.post("/sign-in", data={"token": "reg_wrong"})

    assert response.status_code == 401
    assert "unknown, expired or revoked" in response.text
    assert "set-cookie" not in response.headers


def test_guessing_tokens_is_slowed_down(site: TestClient) -> None:
    answers = [site.post("/sign-in", data={"token": f"reg_{number}"}).text for number in range(32)]

    assert "too many requests" in answers[-1]


def test_signing_out_and_revoking_both_end_it(site: TestClient, sign_in, registry: LocalRegistry) -> None:
    prefix = sign_in("jobs")
    assert "You are signed in" in site.get("/sign-in").text
    with registry.database.writing() as session:
        revoke_token(session, prefix)
    assert "You are signed in" not in site.get("/sign-in").text

    sign_in("jobs")
    site.post("/sign-out")
    assert "You are signed in" not in site.get("/sign-in").text


@pytest.mark.parametrize("wanted", ["//evil.test", "https://evil.test", "/\\evil.test", "evil", "", "/a\nb"])
def test_signing_in_leads_nobody_away_from_here(wanted: str) -> None:
    assert own_path(wanted) == "/tasks"


def test_a_page_of_signing_in_is_kept_nowhere(site: TestClient) -> None:
    assert site.get("/sign-in").headers["cache-control"] == "no-store"


def test_a_calibration_is_asked_for_once_however_often_the_button_is_pressed(
    site: TestClient, sign_in, registry: LocalRegistry
) -> None:
    sign_in("jobs")
    fields = {"q": "tag:shell", "policy": "openai:http://localhost#m"}

    places = {site.post("/jobs/calibrate", data=fields).headers["location"] for _ in range(3)}

    (place,) = places
    with registry.database.reading() as session:
        job = find_job(session, int(place.rpartition("/")[2]))
    assert (job.kind, job.arguments) == ("calibrate", fields)


@pytest.mark.parametrize(
    ("path", "fields", "code"),
    [
        ("/jobs/calibrate", {"q": "statu:x", "policy": "openai:x"}, "query_unknown_field"),
        ("/jobs/calibrate", {"q": "", "policy": "opanai:x"}, "unknown_policy"),
        ("/jobs/calibrate", {"q": "", "policy": " "}, "unknown_policy"),
        ("/jobs/refresh", {"set": "nothing"}, "unknown_set"),
        ("/sets", {"q": "", "name": "mine"}, "empty_set"),
        ("/sets", {"q": "", "name": ""}, "bad_name"),
    ],
)
def test_a_form_that_cannot_be_done_says_why_and_offers_the_way_back(
    site: TestClient, sign_in, path: str, fields: dict[str, str], code: str
) -> None:
    sign_in("jobs", "sets")

    response = site.post(path, data=fields)

    assert 400 <= response.status_code < 500
    assert code in response.text
    assert 'href="/tasks"' in response.text


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"q=" + b"x" * 70_000, "application/x-www-form-urlencoded", 413),
        (b"{}", "application/json", 400),
    ],
)
def test_what_is_no_form_or_too_large_is_refused(site: TestClient, sign_in, content, kind, status) -> None:
    sign_in("sets")

    assert site.post("/sets", content=content, headers={"content-type": kind}).status_code == status


def test_pinning_leads_to_the_revision(site: TestClient, sign_in, registry: LocalRegistry, make_task, make_report):
    task = make_task("a", tags=("shell",))
    registry.push([task], [make_report(task)])
    sign_in("sets")

    response = site.post("/sets", data={"q": "tag:shell", "name": "My Set"})

    assert response.headers["location"] == "/sets/my-set/1"
    assert site.get("/sets/my-set/1.json").json()["size"] == 1


def test_a_proposal_shows_what_goes_what_comes_and_why(site: TestClient, proposal: int) -> None:
    page = site.get(f"/proposals/{proposal}").text

    assert "98 % (90–100 %)" in page
    assert "41.2" in page
    assert "47 % (6–93 %)" in page
    assert "files = 2" in page
    assert "predicted to pass 20 to 80 % of the time" in page


def test_publishing_leads_to_the_new_revision_which_tells_its_reasons(site: TestClient, sign_in, proposal: int) -> None:
    sign_in("sets")

    response = site.post(f"/proposals/{proposal}/publish")

    assert response.headers["location"] == "/sets/shell/2"
    shown = site.get("/sets/shell/2.json").json()
    assert [one["slug"] for one in shown["items"]] == ["b", "c"]
    assert [one["why"] for one in shown["reasons"]["retire"]] == ["saturated"]
    assert "41.2" in site.get("/sets/shell/2").text
    assert {one["slug"] for one in site.get("/sets/shell/1.json").json()["items"]} == {"a", "b"}
    assert site.get(f"/proposals/{proposal}.json").json()["published_as"] == 2


@pytest.mark.parametrize("how", ["publish", "dismiss"])
def test_a_proposal_says_whose_token_decided_on_it(site: TestClient, sign_in, proposal: int, how: str) -> None:
    prefix = sign_in("sets")
    site.post(f"/proposals/{proposal}/{how}")
    assert f"by someone ({prefix})" in site.get(f"/proposals/{proposal}").text
    twin = site.get(f"/proposals/{proposal}.json").json()
    assert (twin["decided_by"], twin["decided_at"] >= twin["created_at"]) == (f"someone ({prefix})", True)


def test_a_proposal_is_published_once(site: TestClient, sign_in, proposal: int) -> None:
    sign_in("sets")

    statuses = [site.post(f"/proposals/{proposal}/publish").status_code for _ in range(2)]

    assert statuses == [303, 409]


def test_a_dismissed_proposal_changes_nothing(site: TestClient, sign_in, proposal: int) -> None:
    sign_in("sets")

    response = site.post(f"/proposals/{proposal}/dismiss")

    assert response.headers["location"] == f"/proposals/{proposal}"
    assert site.get(f"/proposals/{proposal}.json").json()["state"] == "dismissed"
    assert site.get("/sets/shell.json").json()["revision"] == 1


def test_a_proposal_about_an_older_revision_says_so_and_offers_no_publishing(
    site: TestClient, sign_in, registry: LocalRegistry, proposal: int
) -> None:
    sign_in("sets")
    registry.resolve("", name="shell")

    page = site.get(f"/proposals/{proposal}")

    assert "newer revision" in page.text
    assert f"/proposals/{proposal}/publish" not in page.text
    assert site.post(f"/proposals/{proposal}/publish").status_code == 409


def test_a_job_is_watched_from_its_queue_to_its_result(site: TestClient, sign_in, registry: LocalRegistry) -> None:
    sign_in("jobs")
    place = site.post("/jobs/calibrate", data={"q": "", "policy": "openai:x#m"}).headers["location"]
    number = int(place.rpartition("/")[2])
    assert 'data-live="yes"' in site.get(place).text
    assert "waiting for a worker" in site.get(place).text

    with registry.database.writing() as session:
        claim(session, "w")
        renew(session, number, "w", {"tasks_done": 3, "tasks": 8, "episodes": 40, "left_s": 125.0})
    page = site.get(place).text
    assert "3 of 8 tasks, 40 episodes, about 2.1 min left" in page
    assert '<progress aria-label="Progress" value="3" max="8">' in page

    with registry.database.writing() as session:
        finish(session, number, "w", result={"tasks": 8, "episodes": 100, "fixed": 256})
    page = site.get(place).text
    assert 'data-live="no"' in page
    assert "8 tasks took 100 episodes; a fixed 32 for each would have been 256" in page


def test_a_refresh_that_is_done_leads_to_its_proposal(
    site: TestClient, sign_in, registry: LocalRegistry, proposal: int
) -> None:
    sign_in("jobs")
    place = site.post("/jobs/refresh", data={"set": "shell", "policy": ""}).headers["location"]
    with registry.database.writing() as session:
        number = claim(session, "w").id
        finish(session, number, "w", result={"proposal": proposal, "retire": 1, "add": 1})

    assert f"/proposals/{proposal}" in site.get(place).text


def test_a_refresh_that_found_nothing_worn_out_says_so_and_leads_to_no_proposal(
    site: TestClient, sign_in, registry: LocalRegistry, proposal: int
) -> None:
    sign_in("jobs")
    place = site.post("/jobs/refresh", data={"set": "shell"}).headers["location"]
    with registry.database.writing() as session:
        finish(session, claim(session, "w").id, "w", result={"proposal": None, "retire": 0, "add": 0})
    page = site.get(place).text
    assert "there is nothing to refresh" in page
    assert "/proposals/" not in page


def test_a_proposal_that_shrinks_the_set_says_so(site: TestClient, registry: LocalRegistry, proposal: int) -> None:
    with registry.database.writing() as session:
        kept = session.get_one(Proposal, proposal)
        refused = [{"family": "lines", "level": {}, "slug": "d", "why": "too_hard"}]
        kept.body = kept.body | {"add": [], "refused": refused}

    page = " ".join(site.get(f"/proposals/{proposal}").text.split())
    assert "1 of the tasks that go have no replacement. Draws refused as too hard: 1. The set would shrink" in page


def test_a_refresh_is_asked_for_a_policy_that_was_measured(site: TestClient, sign_in, proposal: int) -> None:
    sign_in("jobs")
    assert "<option>small</option>" in site.get("/refresh").text

    good = site.post("/jobs/refresh", data={"set": "shell", "lineage": "small"})
    bad = site.post("/jobs/refresh", data={"set": "shell", "lineage": "nobody"})

    assert site.get(f"{good.headers['location']}.json").json()["job"]["arguments"] == {
        "set": "shell",
        "lineage": "small",
    }
    assert bad.status_code == 400
    assert "query_unknown_policy" in bad.text


def test_a_failed_job_says_why(site: TestClient, sign_in, registry: LocalRegistry) -> None:
    sign_in("jobs")
    place = site.post("/jobs/calibrate", data={"q": "", "policy": "openai:x#m"}).headers["location"]
    with registry.database.writing() as session:
        finish(session, claim(session, "w").id, "w", error="engine_failed: nobody answers at http://x")

    page = site.get(place).text
    assert "nobody answers at http://x" in page
    assert "engine_failed" in page


def test_cancelling_ends_a_job(site: TestClient, sign_in) -> None:
    sign_in("jobs")
    place = site.post("/jobs/calibrate", data={"q": "", "policy": "openai:x#m"}).headers["location"]

    assert site.post(f"{place}/cancel").headers["location"] == place
    assert site.get(f"{place}.json").json()["job"]["state"] == "cancelled"


def test_a_read_only_site_refuses_every_write_and_shows_every_page(registry: LocalRegistry) -> None:
    with TestClient(create_app(registry, read_only=True), headers=OURS) as site:
        refused = [site.post(path, data=fields) for path, fields, _ in FORMS]
        refused += [site.post("/api/tasks", json={}), site.delete("/api/jobs/1"), site.post("/sign-in", data={})]
        asked = site.post("/api/posteriors", json={"pairs": []})

        assert {response.status_code for response in refused} == {403}
        assert all("read_only" in response.text for response in refused)
        assert asked.status_code == site.get("/tasks").status_code == 200

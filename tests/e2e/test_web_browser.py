"""The pages in real Chromium: with scripts and without, on a phone, in the dark, by keyboard, and under axe."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from envsdk.checks.report import CheckReport, CheckResult
from envsdk.episode.record import EpisodeRecord, Outcome, PhaseTimes, PolicyId, Turn
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.model import ContainerSpec, TaskSpec
from registry.local import LocalRegistry
from registry.web.app import create_app

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

CHROMIUM = os.environ.get("ENVSDK_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
PAGES = [
    "/tasks",
    "/tasks/sort-lines",
    "/episodes/episode-0",
    "/sets",
    "/sets/shell/1",
    "/families",
    "/policies",
    "/runs",
    "/refresh",
    "/nowhere",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("site")
    with LocalRegistry(f"sqlite:///{folder}/registry.sqlite") as registry:
        _fill(registry, folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(create_app(registry), port=port, log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.05)
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(10)


def _fill(registry: LocalRegistry, folder: Path) -> None:
    tasks = []
    for slug in ("sort-lines", "count-words", "rename-files"):
        files = {
            "tests/test.sh": FileContent(b"#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n", True),
            "environment/Dockerfile": FileContent(b"FROM envsdk-base:bookworm\n"),
        }
        spec = TaskSpec(
            slug=slug, instruction=f"Please {slug}.\n", tags=("shell",), family="files", container=ContainerSpec()
        )
        tasks.append(dump_task(spec, files, folder / slug))
    reports = [
        CheckReport(
            slug=task.slug,
            task_digest=task.digests.task,
            verifier_digest=task.digests.verifier,
            verdict="pass",
            complete=True,
            checks=(CheckResult(check="oracle", outcome="pass"), CheckResult(check="noop", outcome="pass")),
        )
        for task in tasks
    ]
    registry.push(tasks, reports)
    graded = {"graded": True, "in_gradient": True, "in_baseline": True, "redispatch": False, "counts_in_eval": True}
    records = [
        EpisodeRecord(
            episode_id=f"episode-{number}",
            slug=tasks[0].slug,
            task_digest=tasks[0].digests.task,
            verifier_digest=tasks[0].digests.verifier,
            policy=PolicyId(model="small", lineage="small"),
            weight_version_oldest=number // 4,
            weight_version_newest=number // 4,
            outcome=Outcome(
                outcome_class="model_success" if number % 2 else "model_failure",
                cause="finished",
                reward=float(number % 2),
                **graded,
            ),
            turns=(Turn(reply="ls", observation="a.txt", exit_code=0, generated_tokens=2, weight_version=number // 4),),
            times=PhaseTimes(total_s=1.0),
            started_at=1_700_000_000.0 + number,
        )
        for number in range(16)
    ]
    registry.append(records, run="first")
    registry.resolve("tag:shell", name="shell")


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: sync_api.Browser) -> Iterator[sync_api.Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(browser: sync_api.Browser, site: str, path: str, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(site + path)

    found = axe.Axe().run(page)

    assert found.violations_count == 0, found.generate_report()
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_no_scripts(browser: sync_api.Browser, site: str, path: str) -> None:
    with_scripts, without = browser.new_context(), browser.new_context(java_script_enabled=False)
    texts = []
    for context in (with_scripts, without):
        page = context.new_page()
        page.goto(site + path)
        texts.append(page.inner_text("main"))
        context.close()

    assert texts[0] == texts[1]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_a_phone(browser: sync_api.Browser, site: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(site + path)

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


@pytest.mark.parametrize("path", PAGES[:-1])
def test_a_page_says_nothing_on_the_console_and_fetches_only_from_here(
    page: sync_api.Page, site: str, path: str
) -> None:
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    page.goto(site + path, wait_until="networkidle")

    assert said == []
    assert [url for url in asked if not url.startswith((site, "data:"))] == []


def test_searching_by_form_puts_the_query_into_the_url(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    page.fill("#q", "sort-lines")
    page.press("#q", "Enter")

    assert page.url == f"{site}/tasks?q=sort-lines"
    assert page.locator("tbody tr").count() == 1


def test_a_facet_narrows_and_its_second_click_widens(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    everything = page.locator("tbody tr").count()
    page.click(".facets >> text=checked")
    narrowed = page.locator("tbody tr").count()
    page.click(".facets >> text=checked")

    assert narrowed < everything == page.locator("tbody tr").count()


def test_slash_moves_to_the_search_box(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    page.keyboard.press("/")

    assert page.evaluate("document.activeElement.id") == "q"


def test_the_first_tab_offers_to_skip_to_the_content(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.textContent") == "Skip to content"


def test_a_reader_walks_from_the_list_to_an_episode(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    page.click("tbody >> text=sort-lines")
    page.click("tbody a >> text=episode-15")

    assert "Turn 1" in page.inner_text("main")
    assert "a.txt" in page.inner_text("main")

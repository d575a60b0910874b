"""The pages in real Chromium: with scripts and without, on a phone, in the dark, by keyboard, and under axe."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn

from envsdk.checks.report import CheckReport, CheckResult
from envsdk.episode.record import EpisodeRecord, PhaseTimes, PolicyId, TokenTrace, Turn, VersionSpan
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.model import ContainerSpec, TaskSpec
from registry.jobs import cancel, enqueue
from registry.local import LocalRegistry
from registry.refresh.carry_out import proposal_body, store_proposal
from registry.refresh.proposal import Retire, plan_refresh
from registry.tokens import create_token
from registry.web.app import create_app
from registry.worker import serve_jobs
from tests.fakes.outcomes import finished

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
    "/sets/shell/diff",
    "/families",
    "/families/files",
    "/policies",
    "/runs",
    "/refresh",
    "/proposals/1",
    "/jobs",
    "/jobs/1",
    "/sign-in",
    "/api",
    "/tasks?q=statu:x",
    "/nowhere",
]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    folder = tmp_path_factory.mktemp("site")
    with LocalRegistry(f"sqlite:///{folder}/registry.sqlite") as opened:
        _fill(opened, folder)
        yield opened


@pytest.fixture(scope="module")
def token(registry: LocalRegistry) -> str:
    with registry.database.writing() as session:
        return create_token(session, "browser", scopes=["jobs", "sets"]).secret


@pytest.fixture(scope="module")
def site(registry: LocalRegistry) -> Iterator[str]:
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
    records = [
        EpisodeRecord(
            episode_id=f"episode-{number}",
            slug=tasks[0].slug,
            task_digest=tasks[0].digests.task,
            verifier_digest=tasks[0].digests.verifier,
            policy=PolicyId(model="small", lineage="small"),
            weight_version_oldest=number // 4,
            weight_version_newest=number // 4,
            outcome=finished(float(number % 2)),
            turns=(Turn(reply="ls", observation="a.txt", exit_code=0, generated_tokens=2, weight_version=number // 4),),
            tokens=TokenTrace(
                ids=(1, 2, 3, 4, 5),
                loss_mask=(0, 0, 0, 1, 1),
                logprobs=(0.0, 0.0, 0.0, -0.1, -0.2),
                versions=(VersionSpan(version=number // 4, start=3, end=5),),
                prompt_len=3,
            ),
            times=PhaseTimes(total_s=1.0),
            started_at=1_700_000_000.0 + number,
        )
        for number in range(16)
    ]
    registry.append(records, run="first")
    registry.resolve("tag:shell", name="shell")
    with registry.database.writing() as session:
        plan = plan_refresh(session, "shell")
        worn = Retire(
            1,
            tasks[0].slug,
            tasks[0].digests.task,
            tasks[0].digests.verifier,
            "files",
            "saturated",
            30.0,
            0.9,
            0.8,
            1.0,
            16,
        )
        changed = replace(plan, retire=(worn,), kept=plan.kept[1:])
        store_proposal(session, changed, proposal_body(changed, [], []))
        enqueue(session, "refresh", {"set": "shell"})
        cancel(session, 1)


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
    told = {"x-request-id": "the-same"}  # stands on error pages, and is new for every request that brings none
    with_scripts = browser.new_context(extra_http_headers=told)
    without = browser.new_context(extra_http_headers=told, java_script_enabled=False)
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

    answer = page.goto(site + path, wait_until="networkidle")

    # Of an answer that is an error, as to a query with a fault, the browser itself says the status.
    assert [line for line in said if answer.ok or f"status of {answer.status} " not in line] == []
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


def test_arrows_choose_a_completion_and_enter_takes_it(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    page.fill("#q", "")
    page.type("#q", "stat")
    page.wait_for_selector("#suggestions li")
    page.press("#q", "ArrowDown")
    chosen = page.get_attribute("#q", "aria-activedescendant")

    assert page.get_attribute(f"#{chosen}", "aria-selected") == "true"
    page.press("#q", "Enter")
    assert page.input_value("#q") == "status:"
    page.wait_for_selector("#suggestions li:has-text('learnable')")
    page.press("#q", "Escape")
    assert page.locator("#suggestions").is_hidden()
    assert page.url == f"{site}/tasks"


def test_axe_finds_nothing_in_open_completions(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    page.focus("#q")
    page.press("#q", "ArrowDown")
    page.wait_for_selector("#suggestions li")

    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_fault_in_a_query_is_told_by_its_box(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks?q=status:lernable")

    assert page.get_attribute("#q", "aria-invalid") == "true"
    described = page.get_attribute("#q", "aria-describedby")
    assert "did you mean" in page.inner_text(f"#{described}")
    assert "^^^^^^^^" in page.inner_text(f"#{described}")


@pytest.mark.parametrize("path", ["/tasks", "/tasks/sort-lines", "/sets/shell/1", "/proposals/1", "/sign-in"])
def test_whatever_has_focus_shows_it(page: sync_api.Page, site: str, path: str) -> None:
    page.goto(site + path)
    for _ in range(12):
        page.keyboard.press("Tab")
        width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width >= 2, page.evaluate("document.activeElement.outerHTML")


def test_nothing_moves_for_who_wants_no_motion(browser: sync_api.Browser, site: str) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{site}/tasks")

    moving = page.evaluate(
        "[...document.querySelectorAll('*')].filter(e => getComputedStyle(e).animationName !== 'none').length"
    )
    assert moving == 0
    context.close()


def test_print_leaves_out_what_paper_cannot_do(page: sync_api.Page, site: str) -> None:
    page.goto(f"{site}/tasks")
    page.emulate_media(media="print")

    assert page.locator("nav[aria-label=Registry]").is_hidden()
    assert page.locator("section.acts").is_hidden()
    assert page.locator("tbody tr").first.is_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_set_is_pinned_from_a_search(browser: sync_api.Browser, site: str, token: str, scripts: bool) -> None:
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    sign_in(page, site, token, f"{site}/tasks?q=tag:shell")
    page.fill("#name", f"pinned-{scripts}".lower())
    page.click("button:has-text('Pin')")

    assert page.url == f"{site}/sets/pinned-{str(scripts).lower()}/1"
    assert "3 tasks" in page.inner_text("caption >> nth=-1")
    context.close()


def sign_in(page: sync_api.Page, site: str, token: str, back: str) -> None:
    """Press a button unsigned, be asked to sign in, and come back to where it was."""
    page.goto(back)
    page.fill("#name", "any")
    page.click("button:has-text('Pin')")
    assert page.url.startswith(f"{site}/sign-in?next=")
    page.fill("#token", token)
    page.click("main button:has-text('Sign in')")
    assert page.url == back


def work(registry: LocalRegistry, **works: object) -> None:
    """Do what is queued, in this thread."""
    asyncio.run(serve_jobs(registry, works=works, forever=False))  # type: ignore[arg-type]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_calibration_is_started_watched_and_finished(
    browser: sync_api.Browser, registry: LocalRegistry, site: str, token: str, scripts: bool
) -> None:
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    sign_in(page, site, token, f"{site}/tasks?q=sort-lines")
    page.fill("#policy", f"openai:http://localhost#{scripts}")
    page.click("button:has-text('Calibrate')")
    job = page.url
    assert "waiting for a worker" in page.inner_text("main")

    go_on = threading.Event()

    async def calibrate(_registry: object, _arguments: object, _folder: object, tell: object) -> dict[str, int]:
        tell({"tasks_done": 1, "tasks": 2, "episodes": 8})
        await asyncio.to_thread(go_on.wait, 60)
        return {"tasks": 2, "episodes": 12, "fixed": 64}

    worker = threading.Thread(target=work, args=(registry,), kwargs={"calibrate": calibrate})
    worker.start()
    try:
        until(page, "1 of 2 tasks, 8 episodes", reload=not scripts)
    finally:
        go_on.set()
        worker.join(30)
    until(page, "2 tasks took 12 episodes", reload=not scripts)
    assert page.url == job
    context.close()


def until(page: sync_api.Page, text: str, *, reload: bool) -> None:
    """Wait for a text to appear by itself, or by pressing the page's own link where it has no scripts."""
    if not reload:
        page.wait_for_selector(f"main:has-text('{text}')", timeout=60_000)
        return
    for _ in range(120):
        if text in page.inner_text("main"):
            return
        page.wait_for_timeout(500)
        link = page.locator("a:has-text('Reload')")
        link.click() if link.count() else page.reload()
    raise AssertionError(f"{text!r} never came: {page.inner_text('main')}")


def test_a_proposal_is_reviewed_and_published_on_confirmation(
    browser: sync_api.Browser, registry: LocalRegistry, site: str, token: str
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, site, token, f"{site}/tasks?q=tag:shell")
    page.goto(f"{site}/refresh")
    page.click("text=shell@1")
    assert "30.0" in page.inner_text("main")
    assert page.locator("button:has-text('Publish the new revision')").is_hidden()

    page.click("summary:has-text('Publish')")
    page.click("button:has-text('Publish the new revision')")

    assert page.url == f"{site}/sets/shell/2"
    assert "0 added, 1 removed" in page.inner_text("main")
    assert registry.revision("shell").revision == 2
    context.close()

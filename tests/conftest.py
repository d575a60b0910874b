"""What the tests need from the machine: probed once, skipped loudly where it is missing, refused under ``CI=true``.

A test says what it needs with a marker. Where that is missing the test is skipped, and a table at the end of the run says
what was skipped, how often, why, and what would bring it. With ``CI=true`` any skip fails the run, but those whose reason
begins with ``pending:`` (case kinds that a named later part brings).
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import hypothesis
import pytest

from envsdk import prerequisites
from envsdk.home import rootfs_dir

# A deadline on an example is an assertion on the machine's load.
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")

MISSING = "not available: "
ALLOWED = "pending:"
REFUSED = 6
"""Exit code of a run with a skip that CI refuses, whatever else failed: asking the failures once more mends no skip."""


@dataclass(frozen=True, slots=True)
class Need:
    """One marker: ``lacking`` tells why the machine cannot run such tests, or nothing where it can."""

    lacking: Callable[[], str]
    fix: str


def _lacks(probe: Callable[[], prerequisites.Finding]) -> Callable[[], str]:
    return functools.cache(lambda: "" if (found := probe()).state == "ok" else found.detail)


@functools.cache
def _vllm() -> str:
    lacking = [name for name in ("torch", "transformers", "vllm") if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


@functools.cache
def _postgres() -> str:
    url = os.environ.get("ENVSDK_TEST_POSTGRES", "")
    if not url:
        return "ENVSDK_TEST_POSTGRES names no server"
    import psycopg

    try:
        psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), connect_timeout=5).close()
    except psycopg.OperationalError as error:
        return str(error).splitlines()[0]
    return ""


@functools.cache
def _toolchains() -> str:
    tree = rootfs_dir("envsdk-toolchains:bookworm")
    return "" if (tree / "etc" / "envsdk-toolchains").is_file() else f"there is no image at {tree}"


NEEDS = {
    "docker": Need(
        _lacks(prerequisites.docker_engine), "make setup as root, or start the engine and run scripts/base_image.sh"
    ),
    "bubblewrap": Need(_lacks(prerequisites.bubblewrap_works), "make setup as root"),
    "vllm": Need(_vllm, "make setup"),
    "postgres": Need(_postgres, "make test starts one; or set ENVSDK_TEST_POSTGRES"),
    "toolchains": Need(_toolchains, "scripts/toolchains.sh as root"),
    "browser": Need(_lacks(prerequisites.chromium), "apt-get install chromium"),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, need in NEEDS.items():
        if item.get_closest_marker(marker) is not None and (why := need.lacking()):
            pytest.skip(f"{MISSING}{marker} - {why} - {need.fix}")


def _skips(reporter: pytest.TerminalReporter) -> Iterator[str]:
    for report in reporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple):
            yield report.longrepr[2].removeprefix("Skipped: ")


def _reporter(config: pytest.Config) -> pytest.TerminalReporter | None:
    return config.pluginmanager.get_plugin("terminalreporter")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = Counter(_skips(terminalreporter))
    if not counts:
        return
    terminalreporter.section("WHAT WAS SKIPPED AND WHY", sep="!", bold=True, yellow=True)
    for reason, number in counts.most_common():
        terminalreporter.line(f"{number:5d} x {reason}")
    if os.environ.get("CI") == "true" and any(not reason.startswith(ALLOWED) for reason in counts):
        terminalreporter.line("CI=true: a skip that is not pending fails the run", red=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = _reporter(session.config)
    if reporter is None or os.environ.get("CI") != "true":
        return  # a worker of xdist reports to the one that has the reporter
    is_over = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
    if is_over and any(not reason.startswith(ALLOWED) for reason in _skips(reporter)):
        session.exitstatus = REFUSED


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of a Chromium that answers; tests that use it carry the marker ``browser``."""
    path = prerequisites.chromium_path()
    assert path is not None, "the marker browser is missing on this test"
    return path

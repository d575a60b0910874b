"""pytest plugin of envsdk, registered under the entry-point group ``pytest11``.

Collects task directories (``task.toml``) and decorated tasks, one item for each task and check: ``sort-lines[noop]``.
It is loaded by every pytest run in an environment where envsdk is installed, so importing it loads nothing of envsdk;
``-p no:envsdk`` leaves it out. Items, sessions and fixtures live in `envsdk.pytest_items` and `envsdk.pytest_session`.
"""

from __future__ import annotations

import fnmatch
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from envsdk.pytest_session import CheckSession, FakeBoxes, RunVerifier, TaskSandbox

TASK_FILE = "task.toml"
MARKERS = (
    "task_check: one check of one task's verifier (envsdk)",
    "sandbox: needs a sandbox back end (envsdk)",
    "docker: its sandbox may be a Docker container (envsdk)",
)
_GROUP = "envsdk"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Every option on the command line and in the ini file."""
    group = parser.getgroup(_GROUP, "checks of task verifiers (envsdk)")
    group.addoption("--task-checks", metavar="A,B", help="only these checks (ini: envsdk_checks)")
    group.addoption("--task-sandbox", metavar="NAME", help="docker or bubblewrap (ini: envsdk_sandbox)")
    group.addoption("--task-repeat", metavar="N", type=int, help="runs of the repeat check (ini: envsdk_repeat)")
    group.addoption(
        "--envsdk-strict",
        action="store_true",
        default=None,
        help="what is skipped for want of a sandbox, or undecided, fails (ini: envsdk_strict)",
    )
    group.addoption("--envsdk-report", metavar="FILE", help="write all results as JSON (ini: envsdk_report)")
    parser.addini("envsdk_checks", "only these checks", type="args", default=[])
    parser.addini("envsdk_sandbox", "sandbox back end", type="string", default="")
    parser.addini("envsdk_repeat", "runs of the repeat check", type="string", default="10")
    parser.addini("envsdk_strict", "what is skipped for want of a sandbox fails", type="bool", default=False)
    parser.addini("envsdk_report", "file for all results as JSON", type="string", default="")
    parser.addini(
        "envsdk_files",
        "patterns of Python files that declare tasks, beside python_files",
        type="args",
        default=["*_tasks.py", "tasks_*.py"],
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, refuse wrong names, and on the controller register who hears the results."""
    if config.inipath is None:
        # In a folder that has no settings, as a first task's, pytest-asyncio warns on five lines that one is not set.
        warnings.filterwarnings("ignore", 'The configuration option "asyncio_default_fixture_loop_scope" is unset')
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    named = ("--task-checks", "--task-sandbox"), ("envsdk_checks", "envsdk_sandbox")
    if any(map(config.getoption, named[0])) or any(map(config.getini, named[1])):
        from envsdk.pytest_session import refuse_wrong_names

        refuse_wrong_names(config)
    if not hasattr(config, "workerinput"):
        path = config.getoption("--envsdk-report") or config.getini("envsdk_report")
        config.pluginmanager.register(Results(path), "envsdk-results")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Task directories by their ``task.toml``, and Python files that declare tasks."""
    if file_path.name == TASK_FILE:
        from envsdk.pytest_items import TaskDirectoryFile

        return TaskDirectoryFile.from_parent(parent, path=file_path)
    if file_path.suffix == ".py" and _declares(file_path, parent.config):
        return pytest.Module.from_parent(parent, path=file_path)
    return None


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[Any] | None:
    """A decorated function of a collected module becomes the items of its tasks."""
    declare = sys.modules.get("envsdk.authoring.declare")
    if declare is None or not callable(obj) or not isinstance(collector, pytest.Module):
        return None
    for declaration in declare.declarations():
        if declaration.function is obj:
            from envsdk.pytest_items import DeclaredTasks

            return [DeclaredTasks.from_parent(collector, name=name, declaration=declaration)]
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a task's checks on one worker where xdist groups them: they share the oracle's end state."""
    if "envsdk.pytest_items" not in sys.modules or not config.pluginmanager.hasplugin("xdist"):
        return
    from envsdk.pytest_items import CheckItem

    for item in items:
        if isinstance(item, CheckItem):
            item.add_marker(pytest.mark.xdist_group(item.source.slug))


class Results:
    """Hears every check's result on the controller, from xdist's workers too; says and writes them at the end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._said: list[dict[str, object]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a result."""
        said = dict(report.user_properties)
        if report.when == "call" and "envsdk_result" in said:
            self._said.append(said)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One line a task, where there were any."""
        if self._said:
            from envsdk.pytest_report import summarise

            summarise(terminalreporter, self._said)

    def pytest_sessionfinish(self) -> None:
        """Write the file that was asked for."""
        if self._path:
            from envsdk.pytest_report import write

            write(Path(self._path), self._said)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End every sandbox."""
    if "envsdk.pytest_session" in sys.modules:
        from envsdk.pytest_session import close

        close(session.config)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Fields that differ, for records of envsdk: verdicts, traces, episodes."""
    kind = type(left)
    if op != "==" or kind is not type(right) or not kind.__module__.startswith("envsdk."):
        return None
    from envsdk.pytest_report import differences

    return differences(left, right)


@pytest.fixture(scope="session")
def _envsdk_session(request: pytest.FixtureRequest) -> CheckSession:
    from envsdk.pytest_session import session_of

    return session_of(request.config)


@pytest.fixture
def run_verifier(_envsdk_session: CheckSession) -> RunVerifier:
    """Call ``run_verifier(task, answer=..., files={...}, script=...)``: the verdict of a task's verifier."""
    from envsdk.pytest_session import RunVerifier

    return RunVerifier(_envsdk_session)


@pytest.fixture
def task_sandbox(_envsdk_session: CheckSession) -> Iterator[TaskSandbox]:
    """Call ``task_sandbox(task)``: a box of a task with ``exec``, ``read`` and ``write``, closed at the test's end."""
    from envsdk.pytest_session import TaskSandbox

    boxes = TaskSandbox(_envsdk_session)
    yield boxes
    boxes.close()


@pytest.fixture
def fake_sandbox(_envsdk_session: CheckSession) -> FakeBoxes:
    """Call ``fake_sandbox(files={...}, replies={command: output})``: a box in memory that runs nothing."""
    from envsdk.pytest_session import FakeBoxes

    return FakeBoxes(_envsdk_session)


def _declares(path: Path, config: pytest.Config) -> bool:
    patterns = config.getini("envsdk_files")
    python_files = config.getini("python_files")
    if any(fnmatch.fnmatch(path.name, pattern) for pattern in python_files):
        return False  # pytest collects it itself
    return any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)

"""SWE-style rows in: the patch is the oracle, and the named tests decide, whatever the agent made of the test files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from envsdk.formats.pytest_names import all_named_passed
from envsdk.formats.swe import import_swe
from envsdk.spec.model import Task

FIX = "--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
TESTS = "--- a/test_m.py\n+++ b/test_m.py\n@@ -1,2 +1,3 @@\n from m import x\n-def test_old(): pass\n+def test_old(): assert x\n+def test_new(): assert x == 2\n"
ROW = {
    "instance_id": "org__repo-1",
    "repo": "org/repo",
    "problem_statement": "x is wrong",
    "image_name": "img:1",
    "patch": FIX,
    "test_patch": TESTS,
    "FAIL_TO_PASS": '["test_m.py::test_new"]',
    "PASS_TO_PASS": ["test_m.py::test_old"],
    "test_cmd": f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -p no:cacheprovider -rA --no-header",
}


def bring(tmp_path: Path, workdir: str = "/testbed", **changes: object):
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps({**ROW, **changes}) + "\n")
    return import_swe(source, tmp_path / "out", workdir=workdir)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "m.py").write_text("x = 1\n")
    (root / "test_m.py").write_text("from m import x\ndef test_old(): pass\n")
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "start"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def verify(task: Task, tmp_path: Path) -> str:
    script = (task.root / "tests" / "test.sh").read_text()
    script = script.replace("/logs/", f"{tmp_path}/logs/").replace("/tests/", f"{task.root}/tests/")
    subprocess.run(["bash", "-c", script], check=True, capture_output=True)
    return (tmp_path / "logs" / "verifier" / "reward.txt").read_text().strip()


def test_a_row_is_a_task_on_its_image(tmp_path: Path) -> None:
    task = bring(tmp_path).tasks[0]
    assert (task.slug, task.spec.container.image, task.spec.container.workdir) == ("org__repo-1", "img:1", "/testbed")
    assert (task.spec.instruction, task.spec.metadata, task.oracle) == (
        "x is wrong",
        {"repo": "org/repo"},
        "solution/solve.sh",
    )


def test_the_oracle_passes_and_nothing_fails(tmp_path: Path, repository: Path) -> None:
    task = bring(tmp_path, workdir=str(repository)).tasks[0]
    assert verify(task, tmp_path) == "0"
    subprocess.run(["git", "checkout", "-q", "."], cwd=repository, check=True)
    subprocess.run(["bash", str(task.root / "solution" / "solve.sh")], check=True)
    assert verify(task, tmp_path) == "1"


@pytest.mark.parametrize("tests", ["def test_new(): pass\ndef test_old(): pass\n", None])
def test_what_the_agent_made_of_the_tests_does_not_count(tmp_path: Path, repository: Path, tests: str | None) -> None:
    task = bring(tmp_path, workdir=str(repository)).tasks[0]
    (repository / "test_m.py").write_text(tests) if tests else (repository / "test_m.py").unlink()
    assert verify(task, tmp_path) == "0"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"image_name": None}, "missing_column"),
        ({"problem_statement": " "}, "missing_column"),
        ({"test_patch": None}, "missing_column"),
        ({"FAIL_TO_PASS": []}, "no_tests"),
        ({"FAIL_TO_PASS": "nope"}, "bad_value"),
        ({"PASS_TO_PASS": [1]}, "bad_value"),
        ({"install_config": {"log_parser": "parse_log_go"}}, "unsupported_parser"),
    ],
)
def test_a_row_that_cannot_be_judged_is_rejected(tmp_path: Path, changes: dict[str, object], code: str) -> None:
    result = bring(tmp_path, **changes)
    assert (result.tasks, [r.code for r in result.rejected]) == ([], [code])


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        ("PASSED a\nPASSED b[x y]\n", True),
        ("\x1b[32mPASSED\x1b[0m a\nPASSED b[x y]\n", True),
        ("PASSED a\n", False),
        ("PASSED a\nFAILED b[x y] - boom\n", False),
        ("FAILED a - x\nPASSED a\nPASSED b[x y]\n", False),
        ("PASSED a\nSKIPPED b[x y]\n", False),
        (" PASSED a\nPASSED b[x y]\n", False),
        ("", False),
    ],
)
def test_names_must_pass_and_only_pass(output: str, passed: bool) -> None:
    assert all_named_passed(output, ["a", "b[x y]"]) is passed


def test_no_names_are_no_success() -> None:
    assert not all_named_passed("PASSED a\n", [])

"""A missing prerequisite is loud, and under CI=true it fails the run; a pending case does not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[2] / "conftest.py"
SETTINGS = """
[pytest]
addopts = -p no:cacheprovider -p no:xdist
markers =
    postgres: needs a server
    bubblewrap: needs bubblewrap
asyncio_default_fixture_loop_scope = function
"""


@pytest.fixture
def run(tmp_path: Path):
    shutil.copy(CONFTEST, tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text(SETTINGS)

    def go(test: str, **env: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(f"import pytest\n{test}\ndef test_good(): pass\n")
        settings = {key: value for key, value in os.environ.items() if key not in {"CI", "ENVSDK_TEST_POSTGRES"}}
        command = [sys.executable, "-m", "pytest", "-q", str(tmp_path)]
        return subprocess.run(command, env=settings | env, cwd=tmp_path, capture_output=True, text=True, check=False)

    return go


NEEDS_POSTGRES = "@pytest.mark.postgres\ndef test_needs(): assert False\n"
PENDING = "def test_later(): pytest.skip('pending: graders')\n"
UNEXPLAINED = "def test_skips(): pytest.skip('no reason given')\n"


def test_a_missing_prerequisite_is_skipped_with_its_reason_and_fix_in_a_table(run) -> None:
    done = run(NEEDS_POSTGRES)
    assert done.returncode == 0
    table = done.stdout.split("WHAT WAS SKIPPED AND WHY")[1]
    assert "1 x not available: postgres - ENVSDK_TEST_POSTGRES names no server - make test starts one" in table


def test_ci_turns_a_missing_prerequisite_into_a_failure(run) -> None:
    done = run(NEEDS_POSTGRES, CI="true")
    assert done.returncode == 6
    assert "fails the run" in done.stdout


def test_ci_refuses_a_skip_that_names_no_later_part(run) -> None:
    assert run(UNEXPLAINED, CI="true").returncode == 6


def test_ci_tells_a_refused_skip_from_failures_beside_it_which_may_be_asked_again(run) -> None:
    wrong = "def test_wrong(): assert False\n"
    assert run(UNEXPLAINED + wrong, CI="true").returncode == 6
    assert run(wrong, CI="true").returncode == 1


def test_ci_accepts_a_pending_case_and_names_it(run) -> None:
    done = run(PENDING, CI="true")
    assert done.returncode == 0
    assert "1 x pending: graders" in done.stdout


def test_a_server_that_does_not_answer_is_no_server(run) -> None:
    done = run(NEEDS_POSTGRES, ENVSDK_TEST_POSTGRES="postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert done.returncode == 0
    assert "not available: postgres - connection" in done.stdout


def test_a_missing_program_is_named(run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "rootfs" / "envsdk-base-bookworm" / "bin").mkdir(parents=True)
    done = run("@pytest.mark.bubblewrap\ndef test_needs(): assert False\n", ENVSDK_HOME=str(home), PATH=str(tmp_path))
    assert "bwrap is not installed" in done.stdout


def test_a_machine_that_lacks_nothing_prints_no_table(run) -> None:
    done = run("", CI="true")
    assert done.returncode == 0
    assert "SKIPPED" not in done.stdout

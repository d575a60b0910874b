"""The scripts behind the Makefile: they start once, end what they started, and touch nothing of others."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted((ROOT / "scripts").glob("*.sh"))
FAKE_DOCKER = '#!/bin/sh\n[ -e "$FAKE_ENGINE" ]\n'
FAKE_DOCKERD = '#!/bin/sh\necho "$$" > "$2"\ntrap "rm -f $FAKE_ENGINE; exit 0" TERM\ntouch "$FAKE_ENGINE"\nwhile :; do sleep 0.1; done\n'


def _program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A machine whose engine is a file: it answers while the file is there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    _program(programs, "docker", FAKE_DOCKER)
    # A shell script's process is called after its interpreter: a copy of the shell under the engine's name is what it is.
    (programs / "dockerd").symlink_to("/bin/sh")
    _program(programs, "setsid", f'#!/bin/sh\nshift\nexec {programs}/dockerd {programs}/dockerd.sh "$@"\n')
    (programs / "dockerd.sh").write_text(FAKE_DOCKERD)
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "ENVSDK_HOME": str(tmp_path / "home"),
        "FAKE_ENGINE": str(tmp_path / "engine"),
    }


def _run(machine: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=machine, cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_parses_and_is_strict(script: Path) -> None:
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
    text = script.read_text()
    assert "set -euo pipefail" in text or 'source "$(dirname "$0")/lib.sh"' in text
    assert script.name == "lib.sh" or os.access(script, os.X_OK)


def test_make_help_lists_every_target() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1).split()
    told = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert sorted(re.findall(r"^  make (\w+)", told, re.MULTILINE)) == sorted(targets)


def test_conform_without_a_folder_is_a_usage_error() -> None:
    done = subprocess.run(["make", "-s", "conform"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "make conform CASES=DIR" in done.stderr


def test_an_engine_that_answers_is_left_alone(machine: dict[str, str]) -> None:
    Path(machine["FAKE_ENGINE"]).touch()
    assert _run(machine, "scripts/engine.sh", "start").returncode == 0
    assert _run(machine, "scripts/engine.sh", "ours").returncode != 0
    assert _run(machine, "scripts/engine.sh", "stop").returncode == 0
    assert Path(machine["FAKE_ENGINE"]).exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or Path("/run/systemd/system").exists(), reason="pending: starts by hand as root only"
)
def test_an_engine_started_here_is_ended_here(machine: dict[str, str]) -> None:
    started = _run(machine, "scripts/engine.sh", "start")
    assert started.returncode == 0, started.stderr
    pid = int((Path(machine["ENVSDK_HOME"]) / "services" / "dockerd.pid").read_text())
    assert _run(machine, "scripts/engine.sh", "ours").returncode == 0
    assert _run(machine, "scripts/engine.sh", "stop").returncode == 0
    assert not Path(machine["FAKE_ENGINE"]).exists()
    assert not _alive(pid)


@pytest.mark.skipif(
    os.geteuid() != 0 or Path("/run/systemd/system").exists(), reason="pending: starts by hand as root only"
)
def test_an_engine_that_dies_at_once_is_told_with_the_end_of_its_log(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin" / "dockerd.sh").write_text("echo no cgroups here; exit 1\n")
    done = _run(machine, "scripts/engine.sh", "start")
    assert done.returncode == 3
    assert "no cgroups here" in done.stderr


def test_a_stale_pid_file_ends_no_stranger(machine: dict[str, str]) -> None:
    services = Path(machine["ENVSDK_HOME"]) / "services"
    services.mkdir(parents=True)
    stranger = subprocess.Popen(["sleep", "60"])
    (services / "dockerd.pid").write_text(str(stranger.pid))
    try:
        assert _run(machine, "scripts/engine.sh", "stop").returncode == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_lock_holds_one_at_a_time(machine: dict[str, str], tmp_path: Path) -> None:
    script = (
        'source scripts/lib.sh; work() { mkdir "$1/busy" && sleep 0.2 && rmdir "$1/busy" && echo ok; }; '
        f'for n in 1 2 3; do (with_lock "{tmp_path}/lock" work "{tmp_path}") & done; wait'
    )
    assert _run(machine, "bash", "-c", script).stdout.split() == ["ok"] * 3


@pytest.mark.parametrize(("status", "fix"), [(3, "install it"), (4, "")])
def test_a_script_dies_with_its_status_and_its_fix(machine: dict[str, str], status: int, fix: str) -> None:
    done = _run(machine, "bash", "-c", f'source scripts/lib.sh; die {status} "no such thing" "{fix}"')
    assert done.returncode == status
    assert ("fix: install it" in done.stderr) is bool(fix)


def test_an_unknown_device_is_refused_before_anything_is_made(machine: dict[str, str]) -> None:
    done = _run(machine | {"ENVSDK_DEVICE": "tpu"}, "scripts/venv.sh")
    assert done.returncode == 2
    assert "cpu or gpu" in done.stderr


INTERRUPTED = """
import os, signal

def test_interrupted():
    os.killpg(0, signal.SIGINT)
    signal.pause()
"""

FIRST_TIME_ONLY = """
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range({failing}))
def test_unsteady(number):
    seen = Path(__file__).with_name(f"seen-{{number}}")
    first = not seen.exists()
    seen.touch()
    assert not first


def test_wrong():
    assert {right}


def test_steady():
    with open(Path(__file__).with_name("steady"), "a") as told:
        told.write("ran ")
"""


def _twice(
    folder: Path, *, failing: int, right: bool, arguments: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(FIRST_TIME_ONLY.format(failing=failing, right=right))
    (folder / "pytest.ini").write_text("[pytest]\n")
    machine = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "UNSTEADY"))}
    told = {"UNSTEADY": str(folder / "unsteady")}
    return _run(machine | told, "scripts/twice.sh", "-c", str(folder / "pytest.ini"), str(folder), *arguments)


def test_what_passes_alone_passes_and_is_named(tmp_path: Path) -> None:
    done = _twice(tmp_path, failing=2, right=True)
    assert done.returncode == 0, done.stdout
    assert done.stderr.count("failed beside the others, passed alone: ") == 2
    assert [line.rpartition("::")[2] for line in (tmp_path / "unsteady").read_text().splitlines()] == [
        "test_unsteady[0]",
        "test_unsteady[1]",
    ]
    assert (tmp_path / "steady").read_text() == "ran "


def test_what_fails_again_fails_the_run(tmp_path: Path) -> None:
    done = _twice(tmp_path, failing=1, right=False)
    assert done.returncode == 1
    assert not (tmp_path / "unsteady").exists()


def test_more_than_a_handful_of_failures_are_not_asked_again(tmp_path: Path) -> None:
    done = _twice(tmp_path, failing=6, right=True)
    assert done.returncode == 1
    assert "once more" not in done.stderr


def test_a_run_without_a_failure_runs_once(tmp_path: Path) -> None:
    done = _twice(tmp_path, failing=0, right=True)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "steady").read_text() == "ran "


def test_an_interrupt_ends_the_scripts_too(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(INTERRUPTED)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        ["scripts/twice.sh", "-c", str(tmp_path / "pytest.ini"), str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what began in the background ignores it
    )
    assert done.returncode == 130


def test_a_file_that_cannot_be_collected_is_not_asked_again(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("assert False\n")
    done = _twice(tmp_path, failing=0, right=True, arguments=("-n", "1"))
    assert done.returncode == 1
    assert "once more" not in done.stderr

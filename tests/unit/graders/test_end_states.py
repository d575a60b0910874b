"""Graders of what an agent left: files by content, bits and number; commands by end and output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envsdk.authoring.state import FolderState
from envsdk.graders import command, file


@pytest.fixture
def state(tmp_path: Path) -> FolderState:
    for name, text, mode in (("a.txt", "one\n", 0o644), ("b.txt", "one\n", 0o600), ("run.sh", "#!/bin/sh\n", 0o755)):
        (tmp_path / "app").mkdir(exist_ok=True)
        (tmp_path / "app" / name).write_text(text)
        (tmp_path / "app" / name).chmod(mode)
    return FolderState(tmp_path)


@pytest.mark.parametrize(
    ("path", "options", "verdict"),
    [
        ("/app/a.txt", {}, "correct"),
        ("/app/a.txt", {"content": "one\n"}, "correct"),
        ("/app/a.txt", {"content": b"one\n"}, "correct"),
        ("/app/a.txt", {"content": "one"}, "incorrect"),
        ("/app/none", {"content": "one\n"}, "no_answer"),
        ("/app/none", {"count": 0}, "correct"),
        ("/app/a.txt", {"count": 0}, "incorrect"),
        ("/app/*.txt", {"content": "one\n"}, "correct"),
        ("/app/*.txt", {"count": 2}, "correct"),
        ("/app/*.txt", {"count": 3}, "incorrect"),
        ("/app/*.csv", {"count": 3}, "no_answer"),
        ("/app/*.txt", {"mode": 0o644}, "incorrect"),
        ("/app/run.sh", {"mode": 0o755, "content": "#!/bin/sh\n"}, "correct"),
        ("/app/run.sh", {"mode": 0o644}, "incorrect"),
        ("/app", {}, "correct"),
        ("/app", {"content": "one\n"}, "incorrect"),
        ("/**/*", {"content": "one\n"}, "incorrect"),
    ],
)
def test_files(state: FolderState, path: str, options: dict[str, Any], verdict: str) -> None:
    assert file(state, path, **options) == verdict


def python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


@pytest.mark.parametrize(
    ("source", "options", "verdict"),
    [
        ("", {}, "correct"),
        ("raise SystemExit(3)", {}, "incorrect"),
        ("raise SystemExit(3)", {"exit_code": 3}, "correct"),
        ("print('a ')", {"output": "a\n\n"}, "correct"),
        ("print('b')", {"output": "a"}, "incorrect"),
        ("print(input())", {"stdin": "é", "output": "é"}, "correct"),
        ("import os; os.kill(os.getpid(), 9)", {}, "incorrect"),
        ("import os; os.kill(os.getpid(), 9)", {"exit_code": 137}, "incorrect"),
        ("import time; time.sleep(60)", {"timeout_s": 0.5}, "incorrect"),
        (
            "import os; print(os.environ.get('HOME'), os.environ['X'])",
            {"env": {"X": "1"}, "output": "None 1"},
            "correct",
        ),
        ("import os; print(os.getcwd())", {"cwd": "/", "output": "/"}, "correct"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", {"output": "\ufffd"}, "correct"),
        ("import sys; sys.stderr.write('noise'); print('a')", {"output": "a"}, "correct"),
        ("print('x' * (9 << 20))", {"output": "x"}, "incorrect"),
    ],
)
def test_commands(source: str, options: dict[str, Any], verdict: str) -> None:
    assert command(python(source), user="root", **options) == verdict


@pytest.mark.parametrize("words", [["/no/such/program"], ["/etc/passwd"], ["/etc/passwd/x"]])
def test_a_program_that_is_not_there_is_no_answer(words: list[str]) -> None:
    assert command(words) == "no_answer"


def test_a_command_is_not_root(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "secret").write_text("x")
    words = ["/bin/sh", "-c", f"id -u; cat {tmp_path}/secret 2>/dev/null"]
    found = subprocess.run(["id", "-u", "nobody"], capture_output=True, text=True, check=True).stdout
    expected = found if os.geteuid() == 0 else f"{os.geteuid()}\nx"
    assert command(words, user="no-such-user", output=expected, exit_code=1 if os.geteuid() == 0 else 0) == "correct"
    assert command(["/bin/sh", "-c", "id -u"], user="root", output=f"{os.geteuid()}") == "correct"


def test_what_a_command_leaves_running_holds_nothing_up() -> None:
    source = "import subprocess; subprocess.Popen(['sleep', '60']); print('done', flush=True)"
    assert command(python(source), output="done", timeout_s=20, user="root") == "correct"


def test_a_command_that_never_reads_its_input_is_not_waited_for() -> None:
    assert command(python("print('done')"), stdin="x" * (1 << 20), output="done", user="root") == "correct"

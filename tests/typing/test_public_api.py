"""Users' type checkers accept the public API, and find the mistakes that it is typed to find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USERS_FILE = "tests/typing/public_api.py"


def checked(*files: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", *files]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_strict_checker_agrees_with_every_line() -> None:
    done = checked(USERS_FILE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_mistakes_that_the_file_marks_are_found(tmp_path: Path) -> None:
    text = (ROOT / USERS_FILE).read_text(encoding="utf-8")
    marked = sum("# type: ignore[" in line for line in text.splitlines())
    unmarked = tmp_path / "user.py"
    unmarked.write_text("\n".join(line.partition("  # type: ignore[")[0] for line in text.splitlines()))
    assert f"Found {marked} errors in 1 file" in checked(str(unmarked)).stdout

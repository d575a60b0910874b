"""A person who runs episodes is told why one got no grade, once for each reason, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.cli.app import run

SOURCE = """from envsdk import Draw, task, verifier


@verifier
def broken(answer: str) -> float:
    raise ValueError("an odd verifier")


@task(verifier=broken)
def one() -> Draw:
    return Draw(instruction="One?", oracle="1", wrong=["2"])
"""


def test_the_reason_is_said_once_however_many_episodes_it_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    assert run(["run", str(tmp_path / "mine.py"), "-n", "2"]) == 4
    told = capsys.readouterr()
    assert "scored 0 of 2" in told.out
    assert told.err.count("not graded: verifier_crash:") == 1
    assert "an odd verifier" in told.err

"""Verifiers that misbehave: each is one task's finding, and the good one checked beside them stays good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.labelled.mini import REWARD, Labelled, write
from tests.labelled.statuses import CHECK_SUM, FRESH, NUMBERS, RUN, SOLVE_SUM, SUM

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]

ODD = {
    "never-ends": "while :; do sleep 1; done",
    "prints-forever": "yes",
    "kills-its-parent": "kill -9 $PPID\nsleep 1\necho 1 > /logs/verifier/reward.txt",
    "kills-everything": "kill -9 -1\necho 1 > /logs/verifier/reward.txt",
    "name with spaces, dots... and ünïcode": "exit 3",
}


def _task(name: str, test: str) -> Labelled:
    return Labelled(name, SUM, SOLVE_SUM, test, "/app/total.txt", lines=NUMBERS, files={"tests/check.py": CHECK_SUM})


def test_each_odd_verifier_is_one_finding_and_a_good_one_beside_them_is_unharmed(tmp_path: Path) -> None:
    write(_task("good", f"{FRESH}{RUN}{REWARD}"), tmp_path)
    for number, (name, test) in enumerate(ODD.items()):
        folder = write(_task(f"odd-{number}", test), tmp_path)
        toml = folder / "task.toml"
        toml.write_text(toml.read_text().replace("timeout_sec = 30.0", "timeout_sec = 2.0"))
        folder.rename(tmp_path / name)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "task.toml").write_text('schema_version = "1.4"\n[verifer]\ntimeout_sec = 1\n')
    (tmp_path / "no-task").mkdir()
    program = str(Path(sys.executable).with_name("envsdk"))
    command = [program, "check", str(tmp_path), "--json", "--sandbox", "bubblewrap", "--checks", "oracle,noop,repeat"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert ended.returncode == 1, ended.stderr
    said = json.loads(ended.stdout)
    verdicts = {task["slug"]: task["verdict"] for task in said["tasks"]}
    assert verdicts.pop("good") == "pass"
    assert len(verdicts) == len(ODD)
    assert set(verdicts.values()) == {"fail"}
    invalid = [error for error in said["errors"] if "broken" in error["where"]]
    assert len(invalid) == 1
    assert "verifier" in f"{invalid[0]['message']} {invalid[0]['hint']}"

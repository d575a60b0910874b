"""`envsdk run` with a real engine: token-exact episodes of a real model, graded, stored, and scored again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envsdk.files.jsonl import read_rows
from tests.unit.cli.test_run import task_in

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]


def envsdk(*args: str) -> tuple[int, dict[str, Any], str]:
    program = [str(Path(sys.executable).with_name("envsdk")), *args, "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_a_model_s_episodes_carry_every_token_and_its_version(tmp_path: Path) -> None:
    task, out = task_in(tmp_path / "task"), tmp_path / "episodes.jsonl"
    status, envelope, said = envsdk("run", str(task), "--policy", "vllm:tiny", "-n", "3", "--out", str(out))
    assert status == 0, said
    rows = read_rows(out).rows
    assert len(rows) == len(envelope["episodes"]) == 3
    for row in rows:
        tokens = row["tokens"]
        generated = sum(tokens["loss_mask"])
        assert tokens["complete"]
        assert generated == row["turns"][0]["generated_tokens"] > 0
        assert sum(span["end"] - span["start"] for span in tokens["versions"]) == generated
        assert all(logprob < 0 for logprob, mask in zip(tokens["logprobs"], tokens["loss_mask"], strict=True) if mask)
        assert row["outcome"]["in_gradient"]
        assert row["stamps"]["first_token"] <= row["stamps"]["last_token"] <= row["stamps"]["verify_start"]
    assert len({row["group_id"] for row in rows}) == 1

    changed = task_in(tmp_path / "changed", "def judge(answer):\n    return 1.0\n")
    status, envelope, said = envsdk("score", str(out), "--verifier", str(changed))
    assert status == 0, said
    assert [episode["after"]["reward"] for episode in envelope["episodes"]] == [1.0] * 3

"""Tasks of several steps in real boxes: a good one passes every check, a fault of one step is found as such."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from envsdk.checks.engine import check_task
from envsdk.checks.report import CheckReport
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task

pytestmark = pytest.mark.bubblewrap
TOML = """schema_version = "1.4"
artifacts = ["/app/total.txt"]

[task]
name = "cases/ledger"

[agent]
timeout_sec = 30.0
user = "agent"

[verifier]
timeout_sec = 30.0
user = "root"
environment_mode = "{mode}"

[environment]
network_mode = "no-network"
memory_mb = 512

[[steps]]
name = "total"
min_reward = 1.0

[[steps]]
name = "share"
artifacts = ["/app/share.txt"]
"""
BOX = """ARG BASE=python:3.12-slim
FROM ${{BASE}}
RUN id agent 2>/dev/null || useradd --create-home agent; mkdir -p /app
WORKDIR /app
RUN printf '12\\n30\\n7\\n' > /app/numbers.txt && chown -R agent:agent /app
{lines}
"""
TEST = """#!/bin/sh
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json
if {condition}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
TOTAL = """[ "$(tr -d '[:space:]' < /app/total.txt)" = 49 ]"""
SHARE = """[ "$(tr -d '[:space:]' < /app/share.txt)" = 12 ]"""


def ledger(root: Path, *, mode: str = "shared", total: str = TOTAL, share: str = SHARE, lines: str = "") -> Path:
    """Sum a file; then, with a second file, divide the sum."""
    files = {
        "task.toml": TOML.format(mode=mode),
        "environment/Dockerfile": BOX.format(lines=lines),
        "steps/total/instruction.md": "Write the sum of the numbers in /app/numbers.txt to /app/total.txt.\n",
        "steps/total/tests/test.sh": TEST.format(condition=total),
        "steps/total/solution/solve.sh": "#!/bin/sh\nawk '{s+=$1} END {print s}' /app/numbers.txt > /app/total.txt\n",
        "steps/share/instruction.md": "The file /app/people.txt now names one person a line. Write how many whole units of "
        "the total each gets to /app/share.txt.\n",
        "steps/share/workdir/people.txt": "Ann\nBob\nCid\nDora\n",
        "steps/share/tests/test.sh": TEST.format(condition=share),
        "steps/share/solution/solve.sh": "#!/bin/sh\nset -eu\nn=$(wc -l < /app/people.txt)\n"
        "echo $(( $(cat /app/total.txt) / n )) > /app/share.txt\n",
    }
    for path, text in files.items():
        place = root / "ledger" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(0o755 if path.endswith(".sh") else 0o644)
    return root / "ledger"


@pytest.fixture
async def provider() -> AsyncIterator[SandboxProvider]:
    opened = open_provider("bubblewrap")
    yield opened
    await opened.close()


async def check(root: Path, provider: SandboxProvider, *checks: str) -> CheckReport:
    return await check_task(load_task(root), provider, checks=checks or None, fresh=True)


@pytest.mark.parametrize("mode", ["shared", "separate"])
async def test_a_good_task_of_two_steps_passes_every_check(
    tmp_path: Path, provider: SandboxProvider, mode: str
) -> None:
    report = await check(ledger(tmp_path, mode=mode), provider)
    assert report.verdict == "pass", [(row.check, row.why) for row in report.checks if row.outcome != "pass"]
    assert report.complete
    assert {row.check for row in report.checks if row.outcome == "skipped"} == {"echo"}


@pytest.mark.parametrize(
    ("changes", "caught_by", "step"),
    [
        ({"share": "[ -s /app/share.txt ]"}, "mutants", "share"),
        ({"share": "true"}, "noop", "share"),
        ({"total": "grep -q 4 /app/total.txt"}, "mutants", "total"),
        ({"share": "[ $(cat /app/share.txt) = $(( $(date +%s) > 1800000000 ? 13 : 12 )) ]"}, "clock", "share"),
        ({"lines": "RUN echo 12 > /app/expected_share.txt"}, "leak", "share"),
    ],
    ids=["any-content", "anything", "one-digit", "a-day-to-come", "answer-of-a-later-step-in-the-image"],
)
async def test_a_fault_of_one_step_is_found_and_named(
    tmp_path: Path, provider: SandboxProvider, changes: dict[str, str], caught_by: str, step: str
) -> None:
    [found] = (await check(ledger(tmp_path, **changes), provider, caught_by)).checks
    assert found.outcome == "fail", found
    assert found.why.startswith(f"step {step}: ")
